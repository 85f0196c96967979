// runner/experiment/experiment.h: one experiment file, read and checked: everything that a run is
// made of.
#pragma once

#include <kj/filesystem.h>
#include <kj/memory.h>
#include <kj/string.h>
#include <kj/time.h>

#include "configs/language/document.h"
#include "configs/language/reader.h"
#include "io/data_config.h"
#include "io/datasets/datasets.h"
#include "nn/network/graph.h"
#include "nn/network/model.h"
#include "nn/optimizer/update_rules.h"
#include "nn/program.h"
#include "rpc/modes/modes.h"
#include "rpc/placement.h"
#include "runner/experiment/expectations.h"
#include "runner/experiment/published.h"
#include "runner/logs/log_styles.h"

namespace runner {

using kj::uint;

// Who starts the roles: see launchers.h.
struct LauncherKind {
  const char* name;
  const char* doc;
  enum Word { LOCAL, INLINE } word;
};

// What a gradient is the gradient of.
struct LossReduction {
  const char* name;
  const char* doc;
  enum Word { MEAN, SUM } word;
};

// [train]
struct TrainConfig {
  // What comes first ends the run; one of them is there.
  kj::Maybe<uint> epochs;     // passes over the training records
  kj::Maybe<uint64_t> steps;  // updates of the whole job
  uint64_t seed;
  nn::UpdateRules rules;
  const LossReduction* loss;
  double labelSmoothing;
  nn::Precision precision;
  configs::Span precisionSpan;  // of its value, or of [train] without one
  double lossScale;             // of FP16
  bool deterministic;

  static TrainConfig read(configs::Reader& reader, const nn::Conventions& conventions);
};

// "1 worker", "2 workers".
kj::String counted(uint64_t n, kj::StringPtr noun);

// What the job does when it loses a role.
struct LossPolicy {
  const char* name;
  const char* doc;
};

// [cluster]
struct ClusterConfig {
  const LauncherKind* launcher;
  uint servers;
  uint serversPerProcess;
  uint workers;
  uint threadsPerWorker;          // of each device
  kj::Array<kj::String> devices;  // of each worker: "cpu", "cuda:1"
  configs::Span devicesSpan;
  const LossPolicy* onLoss;
  uint startTimeout_s;
  uint silenceTimeout_s;

  kj::Duration silence() const { return silenceTimeout_s * kj::SECONDS; }
  // Between a worker and a server: leaves time to make a new connection.
  kj::Duration connectionSilence() const { return silence() / 2; }
  // "2 servers and 1 worker", or "1 worker, no servers".
  kj::String roles() const;

  // How many servers, from number `first` on, share a process. 0 if none begins with it.
  uint serversOfProcess(uint first) const;

  // The defaults depend on `kvstore`. Whether the rest goes with it is checked by
  // Experiment::read().
  static ClusterConfig read(configs::Reader& reader, const rpc::KvStoreConfig& kvstore);
};

// [log]
struct LogConfig {
  const LogStyle* style;
  uint every;  // steps between two speed lines of a worker
  bool tensorboard;

  static LogConfig read(configs::Reader& reader);
};

// The word of `train.precision`.
kj::StringPtr wordOf(nn::Precision precision);

// Immutable once read; shared by all threads of a role.
struct Experiment {
  kj::String name;
  io::DataConfig data;
  nn::ModelConfig model;
  TrainConfig train;
  rpc::KvStoreConfig kvstore;
  ClusterConfig cluster;
  LogConfig log;
  kj::Maybe<Published> published;  // of this run
  kj::Array<Expectation> expectations;

  static Experiment read(configs::Reader& reader);

  // When its pushes become updates.
  rpc::Rounds rounds() const { return kvstore.rounds(cluster.workers); }
  // Pieces that the parameters are dealt into.
  uint shards() const { return kvstore.shards(cluster.servers, cluster.workers); }
  // Images that one step of the whole job takes.
  uint64_t globalBatchSize() const { return uint64_t(data.batchSize) * cluster.workers; }
};

// An experiment with the file it came from.
struct LoadedExperiment {
  // Owns what the spans of the experiment and of its graph point into.
  kj::Own<configs::Document> document;
  kj::Maybe<Experiment> experiment;  // null if there are errors
  kj::String resolved;               // the text of `experiment.toml`
  // What two experiments that train the same have in common: a sha256, hexadecimal. It is that of
  // `resolved` without data.source and what says nothing of how a run goes. Where only the records
  // say what the data are, addRecords() has to put theirs into it before it is used.
  kj::String digest;
  kj::String settingsDigest;  // the same without the records
  kj::String errors;          // everything wrong with the file, to be printed; empty = fine
};

// The tree of the file at `path` (relative to the current folder), with `overrides` (`a.b=value`)
// laid over it.
kj::Own<configs::Document> loadDocument(kj::StringPtr path,
    kj::ArrayPtr<const kj::StringPtr> overrides, configs::Diagnostics& diagnostics);

// Reads a tree. What is wrong goes to `diagnostics`; the experiment is null then, and `errors` is
// the caller's to fill.
LoadedExperiment readExperiment(
    kj::Own<configs::Document> document, configs::Diagnostics& diagnostics);

// Reads and checks the file of one run at `path` (relative to the current folder), with `overrides`
// (`a.b=value`) laid over it. Shapes are checked too where the data set's are known without
// fetching it, groups of keys in any case. A file with a sweep is an error: see loadRuns(). Errors
// show source lines that fit into `columns`, those of a terminal.
LoadedExperiment loadExperiment(kj::StringPtr path, kj::ArrayPtr<const kj::StringPtr> overrides,
    kj::Maybe<uint> columns = nullptr);

// Puts what the records are into the digest, unless [data] says it all: the same records give the
// same digest wherever they lie. Opens the data set, so imports it if that was not done before.
void addRecords(LoadedExperiment& loaded);

// The reference of the language: configs/REFERENCE.md.
kj::String languageReference();

// What only experiment and data set together can get wrong: too few records, shapes that do not
// fit. loadExperiment() calls it where the facts are known without looking at the records.
void checkAgainst(
    const Experiment& experiment, const io::DatasetFacts& facts, configs::Diagnostics& diagnostics);

// The graph for a data set that the experiment was checked against.
nn::Graph graphOf(const Experiment& experiment, const io::DatasetFacts& facts);

// The graph's keys as the store sees them, whole where their optimizer needs it, and their deal
// over the servers (one shard for `local`).
kj::Array<rpc::Key> storeKeys(const Experiment& experiment, const nn::Graph& graph);
rpc::Placement placementOf(const Experiment& experiment, const nn::Graph& graph);

}  // namespace runner
