// runner/logs/run_tree.h: finds the folders of runs below a folder.
#pragma once

#include <kj/function.h>
#include <kj/string.h>

namespace runner {

// Calls `visit` for each folder below `top`, whether it is a run (it has events) or holds runs:
// with its path, its path from `top`, and whether it is a run. A folder comes before those in it.
// The runs of a sweep come in its order, then all others by name, 2 before 10.
//
// Does not look into runs, or more than four levels deep, because runs are at most as deep as
// runs/<name>/<settings>/<n>. Follows links to folders, but visits no folder twice: a link to a
// folder of the tree is left out. Calls `leaveOut` with the reason for each folder below `top` that
// cannot be read. Throws if `top` itself cannot be read.
void visitRunTree(kj::StringPtr top,
    kj::FunctionParam<void(kj::StringPtr path, kj::StringPtr label, bool isRun)> visit,
    kj::FunctionParam<void(kj::StringPtr reason)> leaveOut);

// Whether the folder at `path` is a run. It counts as one even if its events cannot be read.
bool isRunFolder(kj::StringPtr path);

}  // namespace runner
