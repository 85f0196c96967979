#include "runner/logs/run_folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <kj/debug.h>
#include <kj/map.h>
#include <kj/time.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "configs/language/failure.h"
#include "runner/system/command_line.h"
#include "runner/system/files.h"
#include "runner/text/numbers.h"

namespace runner {

namespace {

// The files that roles, the launcher and reports write to a run's folder, apart from one log per
// role.
constexpr kj::StringPtr WRITTEN[] = {"experiment.toml"_kj, "log.txt"_kj, "events.jsonl"_kj,
    "table.md"_kj, "table.csv"_kj, "report.html"_kj, "weights.safetensors"_kj,
    "best.safetensors"_kj, "ema.safetensors"_kj, "confusion.csv"_kj, "classes.txt"_kj,
    "tensorboard"_kj, "checkpoints"_kj, "workers"_kj};

bool isWritten(kj::StringPtr name) {
  for (auto known: WRITTEN) {
    if (name == known) return true;
  }
  bool ofRole =
      name.startsWith("coordinator-") || name.startsWith("server-") || name.startsWith("worker-");
  return ofRole && (name.endsWith(".log") || name.endsWith(".trace.json"));
}

// Returns the names of everything in the folder at `path`. Throws if it cannot be read.
kj::Vector<kj::String> namesIn(kj::StringPtr path) {
  kj::Vector<kj::String> names;
  DIR* dir = ::opendir(path.cStr());
  if (dir == nullptr) configs::fail("cannot read ", path, ": ", strerror(errno));
  KJ_DEFER(::closedir(dir));
  while (dirent* entry = ::readdir(dir)) names.add(kj::str(entry->d_name));
  return names;
}

[[noreturn]] void failToMake(kj::StringPtr path, int error, kj::StringPtr wayOut = otherRuns()) {
  configs::fail("cannot make the folder ", path, ": ", strerror(error), "; ", wayOut);
}

// Returns the number of the run with this folder name: as newRunFolder() writes it, `7` but not
// `007`. Null for every other name, and for numbers that no run reaches, such as a date.
kj::Maybe<uint64_t> runNumberOf(kj::StringPtr name) {
  constexpr uint64_t NUMBER_MAX = 9'999'999;
  if (name.startsWith("0")) return nullptr;
  return parseWhole(name, NUMBER_MAX);
}

// Returns the largest run number among the entries of `path`, or 0.
uint64_t newest(kj::StringPtr path) {
  DIR* dir = ::opendir(path.cStr());
  if (dir == nullptr) failToMake(path, errno);
  KJ_DEFER(::closedir(dir));
  uint64_t largest = 0;
  while (dirent* entry = ::readdir(dir)) {
    KJ_IF_MAYBE(number, runNumberOf(entry->d_name)) largest = kj::max(largest, *number);
  }
  return largest;
}

// Makes the folder `path` if it does not exist. Returns 0, or errno. Throws if a file has its name.
int makeOne(kj::StringPtr path, kj::StringPtr wayOut) {
  if (::mkdir(path.cStr(), 0777) == 0) return 0;
  if (errno != EEXIST) return errno;
  struct stat about;
  if (::stat(path.cStr(), &about) == 0 && S_ISDIR(about.st_mode)) return 0;
  configs::fail("cannot make the folder ", path, ": a file has that name; rename it, or ", wayOut);
}

// Lets `last` in `parent` point to run `n`.
void setLast(kj::StringPtr parent, uint64_t n) {
  auto last = kj::str(parent, "/last");
  // A link cannot be changed in place, only renamed over. No other process has the number `n`. A
  // link with that name is therefore left from a killed process.
  auto link = kj::str(parent, "/.last-", n);
  ::unlink(link.cStr());
  if (::symlink(kj::str(n).cStr(), link.cStr()) != 0) failToMake(link, errno);
  if (::rename(link.cStr(), last.cStr()) != 0) failToMake(last, errno);
}

}  // namespace

void makeFolders(kj::StringPtr path, kj::StringPtr wayOut) {
  for (size_t i = 1; i <= path.size(); i++) {
    if (i < path.size() && path[i] != '/') continue;
    auto prefix = kj::heapString(path.slice(0, i));
    if (int error = makeOne(prefix, wayOut)) failToMake(prefix, error, wayOut);
  }
}

bool makeFolder(kj::StringPtr path) {
  int error = makeOne(path, otherRuns());
  if (error != 0 && error != ENOENT) failToMake(path, error);
  return error == 0;
}

RunFolder newRunFolder(kj::StringPtr runs, kj::StringPtr name) {
  auto parent = kj::str(runs, "/", name);
  makeFolders(parent);
  auto last = kj::str(parent, "/last");
  struct stat about;
  if (::lstat(last.cStr(), &about) == 0 && !S_ISLNK(about.st_mode)) {
    configs::fail("cannot make the link ", last,
        " to the newest run: something else has that name; rename it, or ", otherRuns());
  }
  for (uint64_t n = newest(parent) + 1;; n++) {
    auto path = kj::str(parent, "/", n);
    if (::mkdir(path.cStr(), 0777) != 0) {
      if (errno == EEXIST) continue;
      failToMake(path, errno);
    }
    setLast(parent, n);
    return {kj::mv(path)};
  }
}

void removeNewRun(const RunFolder& folder) {
  std::error_code error;
  std::filesystem::remove_all(folder.path.cStr(), error);
  auto parent = kj::heapString(folder.path.slice(0, KJ_ASSERT_NONNULL(folder.path.findLast('/'))));
  kj::runCatchingExceptions([&]() {
    auto before = newest(parent);
    if (before > 0) return setLast(parent, before);
    ::unlink(kj::str(parent, "/last").cStr());
  });
}

RunFolder runFolder(kj::StringPtr runs, kj::StringPtr name, kj::StringPtr run) {
  return {kj::str(runs, "/", name, "/", run)};
}

kj::Maybe<kj::uint> wantedWorkers(const RunFolder& folder) {
  constexpr uint64_t BYTES_MAX = 64;
  auto path = folder.workers();
  if (::access(path.cStr(), F_OK) != 0) return nullptr;
  kj::String text;
  auto read = [&]() { text = readRegular(path, BYTES_MAX); };
  if (kj::runCatchingExceptions(read) != nullptr) return nullptr;
  size_t digits = text.endsWith("\n") ? text.size() - 1 : text.size();
  return parseWhole(text.slice(0, digits), 999'999'999).map([](uint64_t n) { return kj::uint(n); });
}

void wantWorkers(const RunFolder& folder, kj::uint count) {
  writeWhole(folder.workers(), kj::str(count, "\n"), "the run keeps the workers that it has");
}

kj::String runOrderFile(kj::StringPtr parent) {
  return kj::str(parent, "/runs.txt");
}

kj::Array<kj::String> runOrderIn(kj::StringPtr parent) {
  // Dozens of sweeps of 10,000 runs, whose names have at most 255 bytes, need less.
  constexpr uint64_t ORDER_BYTES_MAX = 128 << 20;
  kj::Vector<kj::String> names;
  auto file = runOrderFile(parent);
  if (::access(file.cStr(), F_OK) != 0 && errno == ENOENT) return nullptr;
  auto text = readRegular(file, ORDER_BYTES_MAX);
  for (kj::StringPtr rest = text;;) {
    KJ_IF_MAYBE(length, rest.findFirst('\n')) {
      names.add(kj::heapString(rest.slice(0, *length)));
      rest = rest.slice(*length + 1);
    } else {
      return names.releaseAsArray();
    }
  }
}

kj::Array<kj::String> latestSweepIn(kj::StringPtr parent) {
  kj::Vector<kj::String> names;
  for (auto& name: runOrderIn(parent)) {
    if (name.size() == 0) break;
    names.add(kj::mv(name));
  }
  return names.releaseAsArray();
}

void writeRunOrder(kj::StringPtr parent, kj::ArrayPtr<const kj::StringPtr> names) {
  // Without the lock, sweeps that begin at the same time would each leave out the other's runs.
  int raw = ::open(parent.cStr(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (raw < 0) configs::fail("cannot read ", parent, ": ", strerror(errno), "; ", otherRuns());
  kj::AutoCloseFd lock(raw);
  while (::flock(lock, LOCK_EX) != 0 && errno == EINTR) {
  }
  kj::HashSet<kj::StringPtr> own;
  kj::Vector<kj::StringPtr> all;
  for (auto name: names) {
    own.insert(name);
    all.add(name);
  }
  auto before = runOrderIn(parent);
  kj::StringPtr end = "";
  for (auto& name: before) {
    // Keeps runs without a folder too, because another sweep may be about to begin them.
    if (name.size() == 0 || own.contains(name.asPtr())) continue;
    if (all.size() == names.size()) all.add(end);
    all.add(name);
  }
  writeWhole(runOrderFile(parent), kj::str(kj::strArray(all, "\n"), "\n"));
}

kj::Vector<kj::String> writtenIn(const RunFolder& folder) {
  kj::Vector<kj::String> paths;
  for (auto& name: namesIn(folder.path)) {
    if (isWritten(name)) paths.add(kj::str(folder.path, "/", name));
  }
  return paths;
}

kj::Maybe<kj::String> setResultsAside(const RunFolder& folder) {
  kj::Vector<kj::String> names;
  for (auto& path: {folder.checkpoints(), folder.weights(), folder.best(), folder.averaged()}) {
    if (::access(path.cStr(), F_OK) != 0) continue;
    auto aside = kj::str(path, ".refused");
    for (uint i = 2; ::access(aside.cStr(), F_OK) == 0; i++) aside = kj::str(path, ".refused-", i);
    if (::rename(path.cStr(), aside.cStr()) != 0) {
      configs::fail("cannot rename ", path, ": ", strerror(errno), "; move it elsewhere");
    }
    names.add(kj::str(aside.slice(folder.path.size() + 1)));
  }
  if (names.empty()) return nullptr;
  return kj::str(folder.events(), " does not say which run is in its folder, so the run begins ",
      "again. What was there is kept as ", kj::strArray(names, ", "));
}

void emptyRunFolder(const RunFolder& folder) {
  for (auto& name: namesIn(folder.path)) {
    KJ_IF_MAYBE(whole, wholeFileOf(name)) {
      if (isWritten(*whole)) removeAbandoned(kj::str(folder.path, "/", *whole));
    }
  }
  // The events show that the other files are of a run. They go last, so that a call that was killed
  // here can be repeated.
  auto paths = writtenIn(folder);
  auto isOther = [&](kj::StringPtr path) { return path != folder.events(); };
  std::stable_partition(paths.begin(), paths.end(), isOther);
  for (auto& path: paths) {
    std::error_code error;
    std::filesystem::remove_all(path.cStr(), error);
    if (error) configs::fail("cannot remove ", path, ": ", strerror(error.value()));
  }
}

}  // namespace runner
