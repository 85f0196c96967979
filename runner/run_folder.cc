#include "runner/run_folder.h"

#include <dirent.h>
#include <errno.h>
#include <kj/debug.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "configs/language/failure.h"

namespace runner {

namespace {

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

}  // namespace runner
