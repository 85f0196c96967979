// tools/results/step_figures.h: the figures on the results page of a run with one log line per
// step.
#pragma once

#include <kj/common.h>
#include <stdint.h>

#include "tools/logs/step_log_table.h"

namespace tools {

// Figures of one place of a run. Null if the log does not have them.
struct StepFigures {
  kj::Maybe<uint64_t> steps;        // of a worker
  kj::Maybe<uint64_t> globalSteps;  // of the job
  kj::Maybe<double> loss;           // of training
  // tf_replica's final figure: a sum over all validation records, not a mean.
  kj::Maybe<double> crossEntropySum;
  kj::Maybe<double> accuracy;
  kj::Maybe<double> batch_s;  // by the rule of the log's style
  // Of the whole job.
  kj::Maybe<double> images_per_s;
};

// Returns how a run ended. Steps are those of the worker that made most. The other figures are the
// mean over all workers that wrote an end. If no worker wrote one, they are those of the last line
// that has them.
//
// Seconds per batch: in tf_aws those of the last line, which are the time since the start over the
// updates of the job. In schlag the median, because the original divides the shorter interval at
// the end of an epoch by the wrong count. In tf_replica the mean.
//
// Images/s: `stepImages`, the images of one step of all workers, over the seconds of a worker's
// step. In schlag and tf_replica these are the seconds per batch. tf_aws counts by updates: a
// synchronous job has one update per step of all workers, and an asynchronous job has one per
// worker's step. There, the seconds of a step are those of an update, times the updates per
// worker's step (global_step / total step at the end, as a mean over the workers).
StepFigures endOf(const StepLogTable& table, uint64_t stepImages);

// Returns the first line of a batch at or after the update `globalStep`, or null.
kj::Maybe<StepFigures> atStep(const StepLogTable& table, uint64_t globalStep);

}  // namespace tools
