#include "runner/run_folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <kj/debug.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <system_error>

#include "configs/language/failure.h"

namespace runner {

namespace {

constexpr kj::StringPtr LOCK = ".lock"_kj;

// What roles, the launcher and reports write to a run's folder, beside a log a role.
constexpr kj::StringPtr WRITTEN[] = {"experiment.toml"_kj, "log.txt"_kj, "events.jsonl"_kj,
    "table.md"_kj, "table.csv"_kj, "report.html"_kj, "weights.safetensors"_kj, "tensorboard"_kj};

bool isWritten(kj::StringPtr name) {
  constexpr kj::StringPtr HALF = ".part"_kj;
  if (name.endsWith(HALF)) {
    return isWritten(kj::heapString(name.slice(0, name.size() - HALF.size())));
  }
  for (auto known: WRITTEN) {
    if (name == known) return true;
  }
  bool ofRole =
      name.startsWith("coordinator-") || name.startsWith("server-") || name.startsWith("worker-");
  return ofRole && (name.endsWith(".log") || name.endsWith(".trace.json"));
}

[[noreturn]] void failToMake(kj::StringPtr path, int error) {
  configs::fail(
      "cannot make the folder ", path, ": ", strerror(error), "; choose another one with --runs");
}

// The largest number that names an entry of `path`, or 0.
uint64_t newest(kj::StringPtr path) {
  DIR* dir = ::opendir(path.cStr());
  if (dir == nullptr) failToMake(path, errno);
  KJ_DEFER(::closedir(dir));
  uint64_t largest = 0;
  while (dirent* entry = ::readdir(dir)) {
    char* end;
    uint64_t n = strtoull(entry->d_name, &end, 10);
    if (*end == '\0') largest = kj::max(largest, n);
  }
  return largest;
}

}  // namespace

void makeFolders(kj::StringPtr path) {
  for (size_t i = 1; i <= path.size(); i++) {
    if (i < path.size() && path[i] != '/') continue;
    auto prefix = kj::heapString(path.slice(0, i));
    if (::mkdir(prefix.cStr(), 0777) != 0 && errno != EEXIST) failToMake(prefix, errno);
  }
}

RunFolder newRunFolder(kj::StringPtr runs, kj::StringPtr name) {
  auto parent = kj::str(runs, "/", name);
  makeFolders(parent);
  for (uint64_t n = newest(parent) + 1;; n++) {
    auto path = kj::str(parent, "/", n);
    if (::mkdir(path.cStr(), 0777) != 0) {
      if (errno == EEXIST) continue;
      failToMake(path, errno);
    }
    // A link cannot be replaced in place, only renamed over.
    auto link = kj::str(parent, "/.last-", n);
    auto last = kj::str(parent, "/last");
    if (::symlink(kj::str(n).cStr(), link.cStr()) != 0) failToMake(link, errno);
    if (::rename(link.cStr(), last.cStr()) != 0) failToMake(last, errno);
    return {kj::mv(path)};
  }
}

RunFolder runFolder(kj::StringPtr runs, kj::StringPtr name, kj::StringPtr run) {
  return {kj::str(runs, "/", name, "/", run)};
}

kj::String runOrderFile(kj::StringPtr parent) {
  return kj::str(parent, "/runs.txt");
}

HeldRunFolder::HeldRunFolder(RunFolder folder): folder(kj::mv(folder)) {
  auto& path = this->folder.path;
  makeFolders(path);
  auto name = kj::str(path, "/", LOCK);
  int fd = ::open(name.cStr(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (fd < 0) configs::fail("cannot write ", name, ": ", strerror(errno));
  lock = kj::AutoCloseFd(fd);
  if (::flock(lock, LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) configs::fail("cannot lock ", name, ": ", strerror(errno));
    configs::fail(
        "another runner works in ", path, "; wait for it, or choose another folder with --runs");
  }
}

void HeldRunFolder::empty() const {
  DIR* dir = ::opendir(folder.path.cStr());
  if (dir == nullptr) configs::fail("cannot read ", folder.path, ": ", strerror(errno));
  KJ_DEFER(::closedir(dir));
  while (dirent* entry = ::readdir(dir)) {
    kj::StringPtr name = entry->d_name;
    if (!isWritten(name)) continue;
    auto path = kj::str(folder.path, "/", name);
    std::error_code error;
    std::filesystem::remove_all(path.cStr(), error);
    if (error) configs::fail("cannot remove ", path, ": ", strerror(error.value()));
  }
}

}  // namespace runner
