// runner/experiment/model_facts.h: the graph of an experiment, and the sizes that it depends on.
#pragma once

#include "nn/network/graph.h"
#include "nn/program.h"
#include "rpc/wire/peer.h"
#include "runner/experiment/experiment.h"

namespace runner {

// Asks the data set's table, or the imported records where that does not know (image folders).
io::DatasetFacts datasetFacts(const io::DataConfig& config);

// Reports devices that this machine does not have, and a precision that its processor cannot
// calculate with. Call it before what may take long, as fetching data.
void requireMachineFor(const Experiment& experiment, configs::Diagnostics& diagnostics);

// Why two runs may end on other bits, as a sentence without a full stop; null if they do not.
kj::Maybe<kj::StringPtr> whyBitsDiffer(const Experiment& experiment);

// What every role must know of the data before it can start.
struct ModelFacts {
  explicit ModelFacts(const Experiment& experiment);
  // Of a data set that has such records.
  ModelFacts(const Experiment& experiment, io::DatasetFacts facts);

  uint64_t trainingRecords;    // those that are trained on
  uint64_t validationRecords;  // those that are validated on
  nn::Graph graph;
  kj::Array<kj::String> leftOut;  // by the import of the data, a sentence each

  // Epochs of the run, the last of which may be a part of one.
  uint epochs(const Experiment& experiment) const;
  // Steps of each worker until the end of epoch `epoch` (from 1), and in the whole run.
  uint64_t stepsUntilEndOf(uint epoch, const Experiment& experiment) const;
  uint64_t steps(const Experiment& experiment) const;
};

// A worker's program on its devices. `graph` must outlive it, and so must `profile`, to which all
// devices add their lanes, and `gradients`: see nn::ProgramOptions.
kj::Own<nn::Program> programOf(const Experiment& experiment, const nn::Graph& graph,
    kj::Maybe<nn::Profile&> profile = nullptr, kj::ArrayPtr<float> gradients = nullptr);

// What the coordinator's messages may hold: all weights at once.
rpc::MessageLimits jobMessageLimits(const nn::Graph& graph);

}  // namespace runner
