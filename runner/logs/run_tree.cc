#include "runner/logs/run_tree.h"

#include <kj/map.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>

#include <algorithm>
#include <set>

#include "runner/logs/run_folder.h"
#include "runner/system/files.h"
#include "runner/system/reason.h"

namespace runner {

namespace {

constexpr uint DEPTH_MAX = 4;

// Sorts the folders in `path`: runs of its sweeps in their order, then all others by name.
void sortRuns(kj::StringPtr path, kj::ArrayPtr<FoundFolder> folders) {
  kj::HashMap<kj::String, size_t> places;
  for (auto& name: runOrderIn(path)) {
    places.upsert(kj::mv(name), places.size(), [](size_t&, size_t&&) {});
  }
  auto placeOf = [&](const FoundFolder& folder) {
    return places.find(folder.name).orDefault(SIZE_MAX);
  };
  std::stable_sort(folders.begin(), folders.end(),
      [&](const FoundFolder& a, const FoundFolder& b) { return placeOf(a) < placeOf(b); });
}

class Walk {
public:
  Walk(kj::FunctionParam<void(kj::StringPtr, kj::StringPtr, bool)>& visit,
      kj::FunctionParam<void(kj::StringPtr)>& leaveOut)
      : visit(visit), leaveOut(leaveOut) {}

  void begin(kj::StringPtr top) {
    KJ_IF_MAYBE(identity, folderIdentity(top)) visited.insert(*identity);
    note(top, 1);
    look(top, "", 1);
  }

private:
  // Notes the folders below `path` that can be reached without links.
  void note(kj::StringPtr path, uint depth) {
    kj::Array<kj::String> names;
    // look() reports a folder that cannot be read.
    if (kj::runCatchingExceptions([&]() { names = foldersIn(path); }) != nullptr) return;
    for (auto& name: names) {
      auto below = kj::str(path, "/", name);
      KJ_IF_MAYBE(identity, folderIdentity(below)) inTree.insert(*identity);
      if (depth < DEPTH_MAX && !isRunFolder(below)) note(below, depth + 1);
    }
  }

  void look(kj::StringPtr path, kj::StringPtr label, uint depth) {
    auto folders = foldersAndLinksIn(path);
    sortRuns(path, folders);
    for (auto& folder: folders) {
      auto below = kj::str(path, "/", folder.name);
      auto called = label.size() == 0 ? kj::str(folder.name) : kj::str(label, "/", folder.name);
      bool hasOwnPath = inTree.count(folder.identity) > 0;
      if (hasOwnPath && !isFolder(below)) continue;
      if (!visited.insert(folder.identity).second) continue;
      bool isRun = isRunFolder(below);
      visit(below, called, isRun);
      if (isRun || depth == DEPTH_MAX) continue;
      KJ_IF_MAYBE(e, kj::runCatchingExceptions([&]() { look(below, called, depth + 1); })) {
        leaveOut(reasonOf(*e));
      }
    }
  }

  kj::FunctionParam<void(kj::StringPtr, kj::StringPtr, bool)>& visit;
  kj::FunctionParam<void(kj::StringPtr)>& leaveOut;
  std::set<std::pair<dev_t, ino_t>> inTree, visited;
};

}  // namespace

void visitRunTree(kj::StringPtr top,
    kj::FunctionParam<void(kj::StringPtr path, kj::StringPtr label, bool isRun)> visit,
    kj::FunctionParam<void(kj::StringPtr reason)> leaveOut) {
  Walk(visit, leaveOut).begin(top);
}

bool isRunFolder(kj::StringPtr path) {
  struct stat about;
  return ::lstat(RunFolder{kj::str(path)}.events().cStr(), &about) == 0;
}

}  // namespace runner
