// tools/bench/training.h: one worker without servers for benches: its batches and its steps.
#pragma once

#include "io/batches/batcher.h"
#include "nn/program.h"
#include "rpc/store/kv_store.h"
#include "runner/experiment/experiment.h"
#include "runner/experiment/model_facts.h"
#include "runner/logs/verb_times.h"
#include "runner/roles/store_updater.h"
#include "tools/bench/command.h"

namespace tools {

using kj::uint;

// A batch in memory.
class OwnBatch {
public:
  // Synthetic images and labels. Another `number` gives other ones.
  OwnBatch(const nn::Graph& graph, uint images, uint number = 0);
  // The first `distinct` images of another batch, repeated up to `images`.
  OwnBatch(const io::Batch& from, uint distinct, uint images);
  // Valid as long as this object.
  const io::Batch& get() const { return batch; }

private:
  OwnBatch(uint64_t number, uint images, size_t imageFloats);

  kj::Array<float> pixels;
  kj::Array<int32_t> labels;
  kj::Array<uint64_t> draws;
  io::Batch batch;
};

// The experiment's own records, as a worker without others reads them.
class RecordBatches {
public:
  // `experiment` must outlive this object.
  explicit RecordBatches(const runner::Experiment& experiment);
  // Returns the next batch. It is valid until the next call.
  const io::Batch& next();

private:
  kj::Own<io::Dataset> dataset;
  kj::Own<io::Batcher> batcher;
};

// Makes a worker's training step with this batch, as step `step` of its store: computes the loss
// and its gradient, and pushes the gradient segment by segment. Adds the time of each verb, except
// reading, to `verbs`.
nn::BatchResult trainingStep(nn::Program& program, rpc::KvStore& store, const nn::Graph& graph,
    uint64_t step, const io::Batch& batch, runner::VerbTimes& verbs);

// A data set that need not be there. Its images are as large as the crop.
struct AssumedImages {
  uint classes = 0;  // 0: the data set is there and gives the classes
  uint colours = 3;
};

// A sub-command that trains the network of CONFIG, with the options --data, --classes and
// --colours.
class TrainingCommand: public ExperimentCommand {
public:
  // The command line must outlive this object.
  explicit TrainingCommand(runner::CommandLine& commandLine): ExperimentCommand(commandLine, 20) {}

protected:
  AssumedImages assumed;
  bool data = false;  // whether the experiment's own records are read

  // Adds the arguments. `stepsDoc` is the help of --steps, `dataDoc` that of --data.
  void addArguments(kj::MainBuilder& builder, kj::StringPtr stepsDoc, kj::StringPtr dataDoc);
  // Reads and checks the file. If there are errors, prints them and ends the process.
  runner::LoadedExperiment load();
};

// The program of an experiment's network with its first weights, and the store, which is called
// directly: a worker of `local` without logs and meetings. One thread calls it.
class Training {
public:
  // Both arguments must outlive this object. With a profile, the program notes the time of each
  // node. Throws if images are assumed and have no size.
  explicit Training(const runner::Experiment& experiment, kj::Maybe<nn::Profile&> profile = nullptr,
      AssumedImages assumed = {});

  const nn::Graph& graph() const { return facts.graph; }
  // The flat arrays. After awaitUpdate(), the parameters are the newest ones.
  kj::ArrayPtr<const float> parameters() { return program->parameters(); }
  kj::ArrayPtr<const float> statistics() { return program->statistics(); }
  // Of the program.
  uint64_t memory_bytes() const { return program->memory_bytes(); }

  // Compares with the reference implementation for the first one or two images of `batch` (one if
  // the reference's forward pass of two takes more than a second). Compares logits in validation.
  // Compares logits and gradients of a training step with a program for so many images. Returns
  // what was compared ("logits and gradients of 2 images match the reference implementation").
  // Leaves out gradients if the precision has no tolerance for them. Throws if a result differs.
  kj::String check(const io::Batch& batch);

  // Makes a training step: the loss and its gradient, then the update. The caller reads the batch,
  // and charges that time to `verbs`. Returns when everything but the last update is done.
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
