// runner/logs/run_folder.h: the folder of one run: runs/<name>/<n>/, or in a sweep a name made from
// its settings.
#pragma once

#include <kj/string.h>

#include "runner/system/files.h"
#include "runner/system/growing_files.h"

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
  // The file of the role's trace, if it records one: worker-0.trace.json.
  kj::String trace(kj::StringPtr role, kj::uint index) const {
    return kj::str(path, '/', role, '-', index, ".trace.json");
  }
  kj::String events() const { return kj::str(path, "/events.jsonl"); }
  kj::String weights() const { return kj::str(path, "/weights.safetensors"); }
  // The weights of the best epoch, with checkpoint.keep_best.
  kj::String best() const { return kj::str(path, "/best.safetensors"); }
  // The moving average of the weights, with train.ema.
  kj::String averaged() const { return kj::str(path, "/ema.safetensors"); }
  // The confusion matrix of the last validation: see confusion_file.h.
  kj::String confusion() const { return kj::str(path, "/confusion.csv"); }
  // The names of the classes, beside the confusion matrix, if they are known: one per line, by
  // label.
  kj::String classes() const { return kj::str(path, "/classes.txt"); }
  // See runner/checkpoints/checkpoints.h.
  kj::String checkpoints() const { return kj::str(path, "/checkpoints"); }
  // Where the coordinator is, while it runs: see roles/address_file.h.
  kj::String address() const { return kj::str(path, "/address"); }
  // How many workers a user wants, if `runner scale` has said so.
  kj::String workers() const { return kj::str(path, "/workers"); }
  kj::String tensorboard() const { return kj::str(path, "/tensorboard"); }
  // What a launcher without a terminal says: see `runner run --detach`. In a job of Slurm, that is
  // its standard output, and messages() has its standard error.
  kj::String output() const { return kj::str(path, "/output.txt"); }
  kj::String messages() const { return kj::str(path, "/messages.txt"); }
};

// The lengths of those logs of a run that are made from its events: see RunLog.
struct LogExtents {
  kj::String style;  // the name of the style of their lines
  kj::Array<FileExtent> files;
};

// Makes `path` with every missing folder above it. Throws as newRunFolder() does. `wayOut` says
// where else the user may write.
void makeFolders(kj::StringPtr path, kj::StringPtr wayOut = otherRuns());
// Makes a folder in that of a run, and throws as makeFolders() does. Returns false if the run's
// folder does not exist: it was renamed during the run, and must not come back.
bool makeFolder(kj::StringPtr path);

// Makes the next free folder `runs`/`name`/<n> (n = 1, 2, …) and lets `runs`/`name`/last point to
// it. Other names in that folder, such as `007` and `20261122`, do not count. Several processes may
// call this at once. Throws with path, cause and way out.
RunFolder newRunFolder(kj::StringPtr runs, kj::StringPtr name);
// Removes a folder that newRunFolder() has made beside others, because the run cannot begin. `last`
// points to the newest of the others. Ignores errors.
void removeNewRun(const RunFolder& folder);

// Returns `runs`/`name`/`run`, whether it exists or not.
RunFolder runFolder(kj::StringPtr runs, kj::StringPtr name, kj::StringPtr run);

// Returns how many workers RunFolder::workers() asks for. Null if there is no such file, or no
// number in it.
kj::Maybe<kj::uint> wantedWorkers(const RunFolder& folder);
// Writes that file. Throws with path, cause and way out.
void wantWorkers(const RunFolder& folder, kj::uint count);

// Returns the file in the folder `parent` in which sweeps write the order of their runs: one line
// per run, with the name of its folder.
kj::String runOrderFile(kj::StringPtr parent);
// Returns the lines of that file. Empty if there is none. Throws if it cannot be read.
kj::Array<kj::String> runOrderIn(kj::StringPtr parent);
// Returns the runs in that file of the sweep that began last, in their order: the lines before the
// first empty line.
kj::Array<kj::String> latestSweepIn(kj::StringPtr parent);
// Writes the runs of a sweep there, in their order. Those of other sweeps follow after an empty
// line. Several processes may call this at once.
void writeRunOrder(kj::StringPtr parent, kj::ArrayPtr<const kj::StringPtr> names);

// Returns the paths of the files and folders in `folder` that have the names of what runs write.
// Throws if the folder cannot be read.
kj::Vector<kj::String> writtenIn(const RunFolder& folder);

// For a folder whose events do not say which run is there: renames its checkpoints and weights, so
// that a run that begins again there does not remove them. Returns a sentence for the user. Null if
// there were none. Throws with path, cause and way out.
kj::Maybe<kj::String> setResultsAside(const RunFolder& folder);

// Removes the files that a run has written to `folder`, and nothing else. Keeps output() and
// messages(). Throws with path and cause.
void emptyRunFolder(const RunFolder& folder);

}  // namespace runner
