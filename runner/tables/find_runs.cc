#include "runner/tables/find_runs.h"

#include <kj/vector.h>

#include "configs/language/failure.h"
#include "runner/logs/run_folder.h"
#include "runner/logs/run_tree.h"

namespace runner {

kj::Array<FoundRun> findRuns(
    kj::StringPtr path, kj::FunctionParam<void(kj::StringPtr reason)> leaveOut) {
  size_t length = path.size();
  while (length > 1 && path[length - 1] == '/') --length;
  auto folder = kj::heapString(path.slice(0, length));
  kj::Vector<FoundRun> found;
  if (isRunFolder(folder)) {
    found.add(FoundRun{kj::str(folder), kj::str(folder)});
  } else {
    auto visit = [&](kj::StringPtr path, kj::StringPtr label, bool isRun) {
      if (isRun) found.add(FoundRun{kj::str(path), kj::str(label)});
    };
    visitRunTree(folder, visit, kj::mv(leaveOut));
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
    if (isRunFolder(kj::str(path, "/", name))) continue;
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
