// runner/experiment/experiment.h: one experiment file, read and checked. It describes the whole
// run.
#pragma once

#include <kj/filesystem.h>
#include <kj/memory.h>
#include <kj/string.h>

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
#include "runner/experiment/checkpoint_config.h"
#include "runner/experiment/cluster.h"
#include "runner/experiment/continued.h"
#include "runner/experiment/expectations.h"
#include "runner/experiment/log_config.h"
#include "runner/experiment/published.h"
#include "runner/experiment/start_weights.h"
#include "runner/experiment/train_config.h"

namespace runner {

using kj::uint;

// Immutable after reading. All threads of a role share it.
struct Experiment {
  kj::String name;
  io::DataConfig data;
  nn::ModelConfig model;
  kj::Maybe<StartWeights> start;  // the keys of [model] about them; null: initial values
  TrainConfig train;
  rpc::KvStoreConfig kvstore;
  ClusterConfig cluster;
  LogConfig log;
  CheckpointConfig checkpoint;
  kj::Maybe<Continued> continued;  // null: the number of workers was always the same
  kj::Maybe<Published> published;  // the rows for this run
  kj::Array<Expectation> expectations;

  static Experiment read(configs::Reader& reader);

  // The rule by which pushes become updates.
  rpc::Rounds rounds() const {
    auto rounds = kvstore.rounds(cluster.seats());
    rounds.usual = cluster.workers;
    return rounds;
  }
  // When a job continues without a lost worker, the other workers take over its records. Returns
  // true if they do so at the end of the epoch, because in this mode nobody waits for the pushes of
  // the lost worker. Returns false if they do so two steps after the step in which it was lost.
  bool changesAtEpochEnds() const {
    return cluster.onLoss->continues && rounds().counted == rpc::Rounds::EACH;
  }
  // Returns into how many shards the parameters are divided.
  uint shards() const { return kvstore.shards(cluster.servers, cluster.workers); }
  // Returns the images of one step of the whole job.
  uint64_t globalBatchSize() const { return uint64_t(data.batchSize) * cluster.workers; }
};

// An experiment with the file that it came from.
struct LoadedExperiment {
  // Owns the texts that spans of the experiment and of its graph point into.
  kj::Own<configs::Document> document;
  kj::Maybe<Experiment> experiment;  // null if there are errors
  kj::String resolved;               // the text of `experiment.toml`
  // What determines the run: `resolved` without the places of data, without keys that only say
  // where and how roles run, and without sections that do not affect the run.
  kj::String settings;
  // The sha256 of `settings`, in hexadecimal. Two experiments with the same digest train the same
  // weights. If the run also depends on the content of files, addRecords() must add this content to
  // the digest before the digest is used.
  kj::String digest;
  // The part of `settings` that stays the same if the run continues with other numbers of workers
  // and servers: see differOnlyInRoles().
  kj::String settingsWithoutRoles;
  kj::String errors;  // all errors of the file, ready to print; empty if there are none
};

// Returns the tree of the file at `path` (relative to the current folder), with `overrides`
// (`a.b=value`) laid over it.
kj::Own<configs::Document> loadDocument(kj::StringPtr path,
    kj::ArrayPtr<const kj::StringPtr> overrides, configs::Diagnostics& diagnostics);

// Reads a tree. Errors go to `diagnostics`. If there are any, the experiment is null, and the
// caller must set `errors`.
LoadedExperiment readExperiment(
    kj::Own<configs::Document> document, configs::Diagnostics& diagnostics);

// Whether the file at `path` has the form of LoadedExperiment::resolved, as every run writes it.
bool isResolved(kj::StringPtr path);

// Reads and checks the file of one run at `path` (relative to the current folder), with `overrides`
// (`a.b=value`) laid over it. Always checks groups of keys. Also checks shapes if the data set's
// shapes are known without fetching it. A file with a sweep is an error: see loadRuns(). In errors,
// source lines fit into `columns`, the width of the terminal.
LoadedExperiment loadExperiment(kj::StringPtr path, kj::ArrayPtr<const kj::StringPtr> overrides,
    kj::Maybe<uint> columns = nullptr);

// Adds the identity of the records to the digest, unless [data] determines the records. To do so,
// opens the data set, and imports it first if necessary. Also adds the identity of the weights that
// the run starts from. The same records and weights give the same digest wherever they are stored.
void addRecords(LoadedExperiment& loaded);

// Whether a run of one of these experiments may continue as the other: they differ in nothing but
// the numbers of workers and servers, and in [continued]. Opens the data sets if only the records
// determine the data.
bool differOnlyInRoles(const LoadedExperiment& a, const LoadedExperiment& b);

// Returns the reference of the language: configs/REFERENCE.md.
kj::String languageReference();

// Reports errors that depend on both the experiment and the data set: too few records, shapes that
// do not fit. loadExperiment() calls it if the facts are known without reading records.
void checkAgainst(
    const Experiment& experiment, const io::DatasetFacts& facts, configs::Diagnostics& diagnostics);

// Returns the graph for a data set that the experiment was checked against.
nn::Graph graphOf(const Experiment& experiment, const io::DatasetFacts& facts);

// Returns the graph's keys as the store sees them. Keys whose optimizer needs them whole are not
// cut into slices. placementOf() assigns the slices to the servers (one shard for `local`).
kj::Array<rpc::Key> storeKeys(const Experiment& experiment, const nn::Graph& graph);
rpc::Placement placementOf(const Experiment& experiment, const nn::Graph& graph);

}  // namespace runner
