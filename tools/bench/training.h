// tools/bench/training.h: one worker without servers, for benches: its batches and its steps.
#pragma once

#include "io/batches/batcher.h"
#include "nn/program.h"
#include "rpc/store/kv_store.h"
#include "runner/experiment/experiment.h"
#include "runner/experiment/model_facts.h"
#include "runner/logs/verb_times.h"
#include "runner/roles/store_updater.h"

namespace tools {

using kj::uint;

// Images and labels that no data set has, already in memory.
class SyntheticBatch {
public:
  // Another `number`, other images.
  SyntheticBatch(const nn::Graph& graph, uint images, uint number = 0);
  // Valid as long as this object.
  const io::Batch& get() const { return batch; }

private:
  kj::Array<float> pixels;
  kj::Array<int32_t> labels;
  kj::Array<uint64_t> draws;
  io::Batch batch;
};

// A worker's training step with this batch, number `step` of its store: the loss and its gradient,
// which are pushed, segment by segment. What takes how long is added to `verbs`, but for reading.
nn::BatchResult trainingStep(nn::Program& program, rpc::KvStore& store, const nn::Graph& graph,
    uint64_t step, const io::Batch& batch, runner::VerbTimes& verbs);

// Of a data set that need not be there: its images are as large as the crop.
struct AssumedImages {
  uint classes = 0;  // 0: the data set is there, and asked
  uint colours = 3;
};

// The program of an experiment's network with its first weights, and the store, called directly:
// what a worker of `local` is, but for logs and meetings. Called by one thread.
class Training {
public:
  // Both must outlive it. With a profile the program notes what each node takes. Throws if images
  // are assumed and have no size.
  explicit Training(const runner::Experiment& experiment, kj::Maybe<nn::Profile&> profile = nullptr,
      AssumedImages assumed = {});

  const nn::Graph& graph() const { return facts.graph; }
  // The flat arrays. Parameters are the newest behind awaitUpdate().
  kj::ArrayPtr<const float> parameters() { return program->parameters(); }
  kj::ArrayPtr<const float> statistics() { return program->statistics(); }
  // Of the program.
  uint64_t memory_bytes() const { return program->memory_bytes(); }

  // Compares with the naive oracle, for the first image or two of `batch` (one where two cost the
  // oracle's forward pass more than a second): logits in validation, and of a training step, which
  // a program lowered for so many images makes, logits and gradients. Says what was compared
  // ("logits and gradients of 2 images agree with the oracle"); throws if they differ.
  kj::String check(const io::Batch& batch);

  // A training step: the loss and its gradient, then the update. Reading is the caller's, who
  // charges it to `verbs`; returns when all but the last update is done.
  nn::BatchResult step(const io::Batch& batch, runner::VerbTimes& verbs);
  // Waits for the last step's update.
  void awaitUpdate();

private:
  const runner::Experiment& experiment;
  const runner::ModelFacts facts;
  const rpc::Placement placement;
  runner::StoreUpdater updater;
  kj::Own<nn::Program> program;
  kj::Own<rpc::KvStore> store;
  uint64_t done = 0;
};

}  // namespace tools
