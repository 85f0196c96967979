// tools/bench/training.h: one worker without servers for benches: its batches and its steps.
#pragma once

#include "io/datasets/datasets.h"
#include "nn/program.h"
#include "rpc/store/kv_store.h"
#include "runner/experiment/experiment.h"
#include "runner/experiment/model_facts.h"
#include "runner/logs/verb_times.h"
#include "runner/roles/batches.h"
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
  // Replaces each pixel by the nearest value (b - 128) / 32 of a byte b. Returns these bytes.
  kj::Array<kj::byte> roundToBytes();

private:
  OwnBatch(uint64_t number, uint images, size_t imageFloats);

  kj::Array<float> pixels;
  kj::Array<int32_t> labels;
  kj::Array<uint64_t> draws;
  io::Batch batch;
};

// The same synthetic batch for all steps of a program. A program on GPUs keeps the images there, as
// with data.cache = "device".
class SyntheticBatch {
public:
  // The program must outlive this object, and must not have had a batch yet.
  SyntheticBatch(nn::Program& program, const nn::Graph& graph, uint images);
  KJ_DISALLOW_COPY(SyntheticBatch);

  // The images as pixels.
  const io::Batch& get() const { return batch.get(); }
  // Makes this the program's batch.
  void set() { set(batch, rows.size()); }
  // Makes the first `distinct` images, repeated, the program's batch.
  void setFirst(uint distinct);

private:
  void set(const OwnBatch& from, uint distinct);

  nn::Program& program;
  kj::Maybe<nn::RawInput&> raw;  // on GPUs
  OwnBatch batch;
  kj::Maybe<kj::Own<OwnBatch>> repeated;  // of setFirst()
  kj::Array<nn::RawRow> rows;
};

// The experiment's own records, as a worker without others reads them.
class RecordBatches {
public:
  // Both arguments must outlive this object. The program must not have had a batch yet.
  RecordBatches(nn::Program& program, const runner::Experiment& experiment);
  // Makes the next batch the program's.
  void set();

private:
  kj::Own<io::Dataset> dataset;
  runner::Batches batches;
};

// Makes a worker's training step with the program's batch, as step `step` of its store: computes
// the loss and its gradient, and pushes the gradient segment by segment. Adds the time of each verb
// to `verbs`.
void trainingStep(nn::Program& program, rpc::KvStore& store, const nn::Graph& graph, uint64_t step,
    runner::VerbTimes& verbs);

// A data set that need not exist. Its images are as large as the crop.
struct AssumedImages {
  uint classes = 0;  // 0: the data set exists and determines the classes
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

// The program of an experiment's network with its initial weights, and their updater: a worker of
// `local` without logs and meetings. The device updates them if a worker of `local` would let it,
// otherwise the store, which is called directly. One thread calls it.
class Training {
public:
  // Both arguments must outlive this object. With a profile, the program records the time of each
  // node. Throws if images are assumed and have no size.
  explicit Training(const runner::Experiment& experiment, kj::Maybe<nn::Profile&> profile = nullptr,
      AssumedImages assumed = {});

  const nn::Graph& graph() const { return facts.graph; }
  // For setting its batches. It has none yet.
  nn::Program& program() { return *program_; }
  // The flat arrays. After awaitUpdate(), the parameters are the newest ones.
  kj::ArrayPtr<const float> parameters() { return program_->parameters(); }
  kj::ArrayPtr<const float> statistics() { return program_->statistics(); }

  // Compares the first images of `batch` with the reference implementation: two, or one if the
  // batch size is odd or the reference's forward pass of two takes more than a second. Compares
  // logits in validation, then logits and gradients of a training step. Returns a text about the
  // comparison ("logits and gradients of 2 images match the reference implementation"). Leaves out
  // gradients if the precision has no tolerance for them. Throws if a result differs. Call it
  // before the first step.
  kj::String check(SyntheticBatch& batch);

  // Makes a training step with the program's batch: the loss and its gradient, then the update.
  // Returns when everything but the last update is done, or if the device updates, when the device
  // has the step in its queue.
  void step(runner::VerbTimes& verbs);
  // Returns the result of the last step. Waits for the device.
  nn::BatchResult result() const { return program_->result(); }
  // Waits for the last step's update.
  void awaitUpdate();

private:
  const runner::Experiment& experiment;
  const runner::ModelFacts facts;
  const rpc::Placement placement;
  runner::StoreUpdater updater;
  const kj::Maybe<nn::ValueRules> updates;
  kj::Own<nn::Program> program_;
  kj::Own<rpc::KvStore> store;
  kj::Maybe<nn::Trainer&> trainer;  // the program, once it updates the parameters itself
  uint64_t done = 0;
};

}  // namespace tools
