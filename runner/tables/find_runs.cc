#include "runner/tables/find_runs.h"

#include <errno.h>
#include <kj/debug.h>
#include <kj/map.h>
#include <kj/vector.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "configs/language/failure.h"
#include "runner/logs/run_folder.h"
#include "runner/system/files.h"

namespace runner {

namespace {

// Runs are at most as deep as runs/<name>/<settings>/<n>.
constexpr uint DEPTH_MAX = 4;

// A folder counts as a run even if its events cannot be read. Reading them later reports why.
bool isRun(kj::StringPtr folder) {
  struct stat about;
  return ::lstat(RunFolder{kj::str(folder)}.events().cStr(), &about) == 0;
}

// Returns the place of each run in the sweeps of the folder `path`. Empty without a sweep.
kj::HashMap<kj::String, size_t> orderIn(kj::StringPtr path) {
  kj::HashMap<kj::String, size_t> places;
  for (auto& name: runOrderIn(path)) {
    places.upsert(kj::mv(name), places.size(), [](size_t&, size_t&&) {});
  }
  return places;
}

// Returns the names of the folders in `path`: runs of sweeps in the sweeps' order, then the others
// by name, 2 before 10.
kj::Array<kj::String> runFoldersIn(kj::StringPtr path) {
  auto names = foldersAndLinksIn(path);
  auto places = orderIn(path);
  auto placeOf = [&](const kj::String& name) { return places.find(name).orDefault(SIZE_MAX); };
  std::sort(names.begin(), names.end(), [&](const kj::String& a, const kj::String& b) {
    size_t first = placeOf(a), second = placeOf(b);
    return first != second ? first < second : ::strverscmp(a.cStr(), b.cStr()) < 0;
  });
  return names;
}

void find(kj::StringPtr folder, kj::StringPtr label, uint depth, kj::Vector<FoundRun>& found) {
  for (auto& name: runFoldersIn(folder)) {
    auto below = kj::str(folder, "/", name);
    auto called = label.size() == 0 ? kj::str(name) : kj::str(label, "/", name);
    if (isRun(below)) {
      found.add(FoundRun{kj::mv(below), kj::mv(called)});
    } else if (depth < DEPTH_MAX) {
      find(below, called, depth + 1, found);
    }
  }
}

}  // namespace

kj::Array<FoundRun> findRuns(kj::StringPtr path) {
  size_t length = path.size();
  while (length > 1 && path[length - 1] == '/') --length;
  auto folder = kj::heapString(path.slice(0, length));
  kj::Vector<FoundRun> found;
  if (isRun(folder)) {
    found.add(FoundRun{kj::str(folder), kj::str(folder)});
  } else {
    find(folder, "", 1, found);
  }
  if (found.empty()) {
    configs::fail("there is no run in ", folder,
        ": name the folder of a run, such as runs/<name>/1, or one that holds such folders");
  }
  return found.releaseAsArray();
}

kj::Maybe<kj::String> notThereIn(kj::StringPtr path) {
  auto listed = latestSweepIn(path);
  kj::Maybe<kj::StringPtr> first;
  size_t count = 0;
  for (auto& name: listed) {
    if (isRun(kj::str(path, "/", name))) continue;
    if (count == 0) first = name;
    count++;
  }
  KJ_IF_MAYBE(name, first) {
    bool isOne = count == 1;
    return kj::str(count, " of the ", listed.size(), " runs of the latest sweep in ",
        runOrderFile(path), isOne ? " has" : " have", " no row in the table, because ",
        isOne ? "it has not begun or was removed: " : "they have not begun or were removed: ",
        *name, isOne ? "" : " and others");
  }
  return nullptr;
}

}  // namespace runner
