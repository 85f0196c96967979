// runner/model_facts.h: the graph of an experiment, and the sizes that it depends on.
#pragma once

#include "nn/graph.h"
#include "rpc/peer.h"
#include "runner/experiment.h"

namespace runner {

// Asks the data set's table, or the imported records where that does not know (image folders).
io::DatasetFacts datasetFacts(const io::DataConfig& config);

// What every role must know of the data before it can start.
struct ModelFacts {
  explicit ModelFacts(const Experiment& experiment);

  uint64_t trainingRecords;
  uint64_t validationRecords;
  nn::Graph graph;

  // Steps that the whole run takes.
  uint64_t steps(const Experiment& experiment) const;

private:
  ModelFacts(const Experiment& experiment, io::DatasetFacts facts);
};

// What the coordinator's messages may hold: all weights at once.
rpc::MessageLimits jobMessageLimits(const nn::Graph& graph);

}  // namespace runner
