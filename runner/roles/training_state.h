// runner/roles/training_state.h: the progress of a worker's compute thread.
#pragma once

#include "nn/network/graph.h"
#include "nn/program.h"
#include "runner/logs/verb_times.h"
#include "runner/roles/live_progress.h"

namespace runner {

// The progress of a worker's compute thread. Part of a checkpoint.
struct TrainingState {
  uint epoch = 0;        // the present one, from 1
  uint64_t step = 0;     // steps done since the beginning of the run
  nn::BatchResult sums;  // of the present epoch so far, or of its validation
  nn::BatchResult last;  // of the last training batch
  VerbTimes times;       // of the present epoch so far

  // Adds the result of one more batch to `sums`. Throws if the loss is not finite. `isFirst`: the
  // result is that of the run's first step. Its loss follows from the initial values alone.
  void add(const nn::BatchResult& result, bool isFirst = false);
  // Replaces `sums` by the sums of a program that adds them up itself. Throws as add() does.
  void replaceSums(const nn::BatchResult& newSums, bool isFirst = false);
  // Visits all members, to save and to restore them.
  void visitState(configs::StateVisitor& visitor);
  // Publishes epoch, step, sums and times for the io thread.
  void show(LiveProgress& progress) const;
};

// Throws if a value at the end of a run is not finite, with the name of its array. The loss does
// not always show that: if the deviation is infinite, batch norm gives 0.
void requireFinite(const nn::Graph& graph, kj::ArrayPtr<const float> parameters,
    kj::ArrayPtr<const float> statistics);

}  // namespace runner
