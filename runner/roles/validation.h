// runner/roles/validation.h: a worker validates a part of the validation records.
#pragma once

#include "nn/confusion.h"
#include "runner/roles/live_progress.h"
#include "runner/roles/training_state.h"
#include "runner/roles/worker_parts.h"
#include "runner/roles/worker_reports.h"

namespace runner {

// For the compute thread of one worker.
class Validation {
public:
  // All arguments must outlive it.
  Validation(
      WorkerParts& parts, TrainingState& state, WorkerReports& reports, LiveProgress& progress);

  // Validates part number `part` of `parts` with the program's present weights, from each of
  // `views`. Leaves the results of this part in `state.sums`. Reports records that cannot be read.
  // Counts the confusion matrix only with `mayBeLast`, because that takes time, and only the matrix
  // of the run's last validation is shown.
  void run(uint part, uint parts, kj::ArrayPtr<const io::View> views, bool mayBeLast);

  // Returns the confusion matrix of that part if run() has counted it. Empty otherwise, and if
  // another worker has counted the same records.
  kj::Array<nn::ConfusionCell> cells() const { return confusion.cells(); }

private:
  // Begins to read this part.
  void begin(uint newPart, uint newParts, kj::ArrayPtr<const io::View> views);
  // Validates the next batch. Returns false if all batches are validated.
  bool addNext();
  void add(const io::Batch& batch);
  // Counts the images whose label is among the top k, and adds to the confusion matrix.
  void count(kj::ArrayPtr<const float> logits, kj::ArrayPtr<const int32_t> labels);

  WorkerParts& worker;
  TrainingState& state;
  WorkerReports& reports;
  LiveProgress& progress;
  uint part;  // which part the batches are of, and of how many
  uint parts;
  uint64_t inTopK = 0;  // of this part so far
  bool countsConfusion = false;
  nn::Confusion confusion;
  kj::Array<float> meanLogits;  // N×classes, over the views of a batch so far
};

}  // namespace runner
