// runner/logs/run_folder.h: the folder of one run: runs/<name>/<n>/, or by its settings in a sweep.
#pragma once

#include <kj/io.h>
#include <kj/string.h>

#include "runner/system/files.h"

namespace runner {

// Paths of one run, all under `path`.
struct RunFolder {
  kj::String path;

  kj::String experiment() const { return kj::str(path, "/experiment.toml"); }
  kj::String log() const { return kj::str(path, "/log.txt"); }
  // `role` is its word on the command line: worker-0.log.
  kj::String roleLog(kj::StringPtr role, kj::uint index) const {
    return kj::str(path, '/', role, '-', index, ".log");
  }
  // Likewise; what the role has recorded, if it was to: worker-0.trace.json.
  kj::String trace(kj::StringPtr role, kj::uint index) const {
    return kj::str(path, '/', role, '-', index, ".trace.json");
  }
  kj::String events() const { return kj::str(path, "/events.jsonl"); }
  kj::String weights() const { return kj::str(path, "/weights.safetensors"); }
  kj::String tensorboard() const { return kj::str(path, "/tensorboard"); }
};

// Makes `path` with every folder above it that is not there. Throws as newRunFolder() does;
// `wayOut` says where else the user may write.
void makeFolders(kj::StringPtr path, kj::StringPtr wayOut = otherRuns());

// Makes the next free `runs`/`name`/<n> (n = 1, 2, …) and lets `runs`/`name`/last point to it.
// Other names in that folder, as `007` and `20261122`, do not count. Safe against others that do
// the same at the same moment. Throws with path, cause and way out.
RunFolder newRunFolder(kj::StringPtr runs, kj::StringPtr name);

// `runs`/`name`/`run`, whether it is there or not.
RunFolder runFolder(kj::StringPtr runs, kj::StringPtr name, kj::StringPtr run);

// Where sweeps tell the order of their runs in the folder `parent`: one line for each run, the name
// of its folder.
kj::String runOrderFile(kj::StringPtr parent);
// The lines of that file; empty if there is none. Throws if it cannot be read.
kj::Array<kj::String> runOrderIn(kj::StringPtr parent);
// The names in it of the sweep that began last, in their order: those before the first empty line.
kj::Array<kj::String> latestSweepIn(kj::StringPtr parent);
// Writes the runs of a sweep there, in their order. Those of other sweeps stay behind them, after
// an empty line. Several processes may do this at once.
void writeRunOrder(kj::StringPtr parent, kj::ArrayPtr<const kj::StringPtr> names);

// The lock of `folder`, which is made if it is not there; null if another process has it. It is
// released when the descriptor closes. Throws with path, cause and way out.
kj::Maybe<kj::AutoCloseFd> lockOf(const RunFolder& folder);

// Whether another process has that lock now, or an object of this one. Changes nothing there.
bool isHeld(const RunFolder& folder);

// Who has that lock, for messages: "process 4711", or "another process" if it has not said so.
kj::String holderOf(const RunFolder& folder);

// A folder in which no other process of ours works.
class HeldRunFolder {
public:
  // Takes the lock of `folder`, and has it as long as this object lives, or its process. Throws,
  // with the way out, if another process has it.
  explicit HeldRunFolder(RunFolder folder);
  // `lock` is what lockOf() gave.
  HeldRunFolder(RunFolder folder, kj::AutoCloseFd lock);

  const RunFolder folder;

  // Removes what a run has written there, and nothing else.
  void empty() const;

private:
  kj::AutoCloseFd lock;
};

}  // namespace runner
