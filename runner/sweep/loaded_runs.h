// runner/sweep/loaded_runs.h: reads every run of an experiment file: the only one, or those of its
// [sweep].
#pragma once

#include "runner/experiment/experiment.h"
#include "runner/experiment/sweep.h"

namespace runner {

// One run, read and checked.
struct LoadedRun {
  Settings settings;  // empty without a sweep
  // The name of the run's folder: the settings, and the first digits of the digest. Empty without a
  // sweep, and not final before addRecords().
  kj::String name;
  LoadedExperiment loaded;  // its experiment is not null
  // Why the run's data cannot be had, if somebody has tried. The run will fail as a part of its
  // sweep.
  kj::Maybe<kj::String> problem;
};

// All runs of a file, or its errors.
struct LoadedRuns {
  // Owns the texts that all spans point into.
  kj::Own<configs::Document> document;
  kj::Maybe<SweepConfig> sweep;     // null: there is one run, that of the file
  kj::Array<kj::String> shortKeys;  // the names of the swept keys in folders and tables
  kj::Array<LoadedRun> runs;        // empty if there are errors; no two are equal
  kj::String errors;                // all errors, each once, ready to print
};

// Reads and checks the file at `path`, with `overrides` (`a.b=value`) laid over it. `sweeps`
// (`a.b=v1,v2`) are added to the grid of its sweep, and replace the grid's values of the same key.
// Then reads each run as loadExperiment() does.
LoadedRuns loadRuns(kj::StringPtr path, kj::ArrayPtr<const kj::StringPtr> overrides,
    kj::ArrayPtr<const kj::StringPtr> sweeps, kj::Maybe<uint> columns = nullptr);

// The section [data] of a file, or its errors.
struct LoadedData {
  kj::Own<configs::Document> document;  // owns the texts that spans point into
  kj::Maybe<io::DataConfig> config;     // null if there are errors
  kj::String errors;                    // ready to print
};

// Reads only [data] of the file at `path`, as its first run has it, for work that needs no more.
// The sections about the network and the training may be wrong.
LoadedData loadData(kj::StringPtr path, kj::Maybe<uint> columns = nullptr);

// Calls addRecords() for every run whose data are available. Runs of a sweep that turn out to be
// equal become one.
void addRecords(LoadedRuns& all);

}  // namespace runner
