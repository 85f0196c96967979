// runner/experiment/model_facts.h: the graph of an experiment, and the sizes of the data set that
// the graph depends on.
#pragma once

#include "io/batches/division.h"
#include "nn/network/graph.h"
#include "nn/program.h"
#include "rpc/wire/peer.h"
#include "runner/experiment/experiment.h"

namespace runner {

// Returns the facts from the table of data sets, or from the imported records if the table does not
// know them (image folders).
io::DatasetFacts datasetFacts(const io::DataConfig& config);
// Returns the same. If the records are not imported yet, imports them and reports to `progress`.
io::DatasetFacts datasetFacts(const io::DataConfig& config, io::Progress& progress);

// Reports devices that this machine does not have, and a precision that its processor cannot
// calculate with. Reports nothing if workers run elsewhere. Call it before long work, such as
// fetching data.
void requireMachineFor(const Experiment& experiment, configs::Diagnostics& diagnostics);

// Returns why an experiment's devices may give different bits when it runs again, as a sentence
// without a full stop. Null if they always give the same bits. Does not consider the mode: see
// docs/modes.
kj::Maybe<kj::StringPtr> whyBitsDiffer(const Experiment& experiment);

// Returns the highest level of instructions that changes anything for an experiment: AMX only
// computes bf16.
kj::StringPtr highestLevelOf(const Experiment& experiment);
// Sets this process's level of instructions to the one that a run of the experiment would use on
// this machine. For commands that have no coordinator to ask. Call it before the first program is
// made. Does nothing if no device is a CPU, or if this machine does not support the level that the
// file names.
void useInstructionSetOf(const Experiment& experiment);

// Returns a sentence for users whose experiment would probably run at least 1.5 times as fast in
// bf16: three convolutions or more in fp32, on this machine, which has AMX. Otherwise null.
kj::Maybe<kj::StringPtr> precisionHint(const Experiment& experiment, const nn::Graph& graph);

// Facts about the data that every role needs before it can start.
struct ModelFacts {
  explicit ModelFacts(const Experiment& experiment);
  // For a data set with these facts.
  ModelFacts(const Experiment& experiment, io::DatasetFacts facts);

  uint64_t trainingRecords;    // how many are trained on
  uint64_t passLength;         // how many of them a pass reads: see io::Stream
  uint64_t validationRecords;  // how many are validated on
  io::ImageShape imageShape;   // of the stored images; if they differ, of those in a batch
  nn::Graph graph;
  kj::Array<kj::String> leftOut;  // what the import of the data left out, one sentence each
  // The mean image, if the experiment subtracts it from the images, and if the records had to be
  // opened for these facts. Otherwise empty.
  kj::Array<float> meanImage;

  // Returns the epochs of the run. The last one may be incomplete.
  uint epochs(const Experiment& experiment) const;
  // Returns the steps of each worker until the end of epoch `epoch` (from 1), and in the whole run.
  // With `division`, the workers of the job have changed.
  uint64_t stepsUntilEndOf(uint epoch, const Experiment& experiment,
      kj::Maybe<const io::Division&> division = nullptr) const;
  uint64_t steps(
      const Experiment& experiment, kj::Maybe<const io::Division&> division = nullptr) const;
};

// Returns a worker's program on its devices. `graph`, `profile` (to which all devices add their
// lanes) and `gradients` must outlive it: see nn::ProgramOptions.
kj::Own<nn::Program> programOf(const Experiment& experiment, const nn::Graph& graph,
    kj::Maybe<nn::Profile&> profile = nullptr, kj::ArrayPtr<float> gradients = nullptr);
// Returns a program that can only validate. It needs less memory.
kj::Own<nn::Program> validatingProgramOf(const Experiment& experiment, const nn::Graph& graph);

// Returns the limits of the coordinator's messages, which may hold all weights at once, or the
// confusion matrix of a validation on all records.
rpc::MessageLimits jobMessageLimits(const ModelFacts& facts);

}  // namespace runner
