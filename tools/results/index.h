// tools/results/index.h: reads results/index.toml: the facts of the results page that its logs do
// not have.
#pragma once

#include <kj/array.h>
#include <kj/function.h>
#include <kj/string.h>

#include "configs/language/reader.h"
#include "runner/experiment/published.h"
#include "tools/logs/epoch_log_table.h"

namespace tools {

using kj::uint;

// [[machines]]: a row of the page's table.
struct Machines {
  kj::String cluster;
  kj::String processor;
  uint cores;
  kj::String memory;
  kj::String network;
  kj::String software;  // empty if it is not given
};

// [[datasets]]: a row of the page's table.
struct Dataset {
  kj::String name;
  uint classes;
  kj::String image;
  uint64_t training;
  uint64_t validation;
};

// [[experiments.runs]]
struct IndexedRun {
  kj::String log;   // `x` of results/x.log.xz
  kj::String name;  // in tables
  kj::Maybe<kj::String> config;
  kj::String cluster;
  uint machines;
  uint devices;  // on all machines
  uint batchSize;
  kj::String kvstore;
  uint64_t epochImages;  // that all workers take in an epoch
  kj::Maybe<runner::Published> published;
  kj::Maybe<kj::String> difference;  // why our figure differs: a sentence
};

// [[experiments]]: one table of figures, and rows of the table of speeds.
struct IndexedExperiment {
  kj::String name;
  Combine combine;
  kj::Array<uint> epochs;  // empty: all
  kj::Array<IndexedRun> runs;
};

// The tables that every page has, whatever its experiments are.
constexpr kj::StringPtr MACHINES_TABLE = "machines"_kj;
constexpr kj::StringPtr DATASETS_TABLE = "datasets"_kj;
constexpr kj::StringPtr PERFORMANCE_TABLE = "performance"_kj;

struct ResultsIndex {
  kj::Array<Machines> machines;
  kj::Array<Dataset> datasets;
  kj::Array<IndexedExperiment> experiments;

  // `logs` are the names of the existing logs. `isFile` says whether a path from the page's folder
  // names a file. Reports a log that no run names, or that several name. Reports a run without a
  // log, of a cluster or data set that is not listed, or of an experiment file that does not exist.
  static ResultsIndex read(configs::Reader& reader, kj::ArrayPtr<const kj::StringPtr> logs,
      kj::FunctionParam<bool(kj::StringPtr path)> isFile);
};

// Returns the reference of index.toml: results/REFERENCE.md.
kj::String indexReference();

}  // namespace tools
