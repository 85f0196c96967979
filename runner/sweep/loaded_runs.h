// runner/sweep/loaded_runs.h: every run of an experiment file: the one, or those of its [sweep].
#pragma once

#include "runner/experiment/experiment.h"
#include "runner/experiment/sweep.h"

namespace runner {

struct LoadedRun {
  Settings settings;  // empty without a sweep
  // Of its folder: the settings, and the first digits of the digest. Empty without a sweep, and not
  // final before addRecords().
  kj::String name;
  LoadedExperiment loaded;  // its experiment is there
  // Why its data cannot be had, once somebody has tried: a run of a sweep that will fail.
  kj::Maybe<kj::String> problem;
};

struct LoadedRuns {
  // Owns what all spans point into.
  kj::Own<configs::Document> document;
  kj::Maybe<SweepConfig> sweep;     // null: there is one run, that of the file
  kj::Array<kj::String> shortKeys;  // what folders and tables call the keys that are swept
  kj::Array<LoadedRun> runs;        // none if there are errors; no two are equal
  kj::String errors;                // everything wrong, each told once, to be printed
};

// Reads and checks the file at `path` with `overrides` (`a.b=value`) laid over it and `sweeps`
// (`a.b=v1,v2`) added to the grid of its sweep, in place of what it has for the key, and then each
// of its runs as loadExperiment() does.
LoadedRuns loadRuns(kj::StringPtr path, kj::ArrayPtr<const kj::StringPtr> overrides,
    kj::ArrayPtr<const kj::StringPtr> sweeps, kj::Maybe<uint> columns = nullptr);

// Calls addRecords() for every run whose data can be had. Runs of a sweep that turn out to be equal
// become one.
void addRecords(LoadedRuns& all);

}  // namespace runner
