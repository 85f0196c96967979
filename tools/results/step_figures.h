// tools/results/step_figures.h: what the results page tells of a run whose log has a line a step.
#pragma once

#include <kj/common.h>
#include <stdint.h>

#include "runner/tables/result_table.h"
#include "runner/tables/step_table.h"

namespace tools {

// Figures of one place of a run. What the log does not tell is null.
struct StepFigures {
  kj::Maybe<uint64_t> steps;        // of a worker
  kj::Maybe<uint64_t> globalSteps;  // of the job
  kj::Maybe<double> loss;           // of training
  // tf_replica's figure of the end: a sum over all validation records, no mean.
  kj::Maybe<double> crossEntropySum;
  kj::Maybe<double> accuracy;
  kj::Maybe<double> batch_s;  // by the rule of the log's style
  // Of the whole job.
  kj::Maybe<double> images_per_s;
};

// How a run ended. Steps are those of the worker that made most; the other figures are those of the
// log's end, over all workers that wrote one (their mean; `combine` is for accuracies), or else
// those of the last line that has them.
//
// Seconds a batch: in tf_aws the last line's, which is the time since the start by the updates of
// the job; in schlag the median (the original divides the shorter interval at the end of an epoch
// by the wrong count); in tf_replica the mean.
//
// Images/s: `stepImages`, the images of one step of all workers, by the seconds of a worker's step.
// Those are the seconds a batch in schlag and tf_replica. tf_aws counts by updates, of which
// there is one a step of all workers in a synchronous job, and one a worker's step in an
// asynchronous one: a worker's step takes as many updates as its log has for each of its steps
// (total step and global_step of the end, in the mean over the workers).
StepFigures endOf(const runner::StepTable& table, runner::Combine combine, uint64_t stepImages);

// The first line of a batch at or behind the update `globalStep`, or null.
kj::Maybe<StepFigures> atStep(const runner::StepTable& table, uint64_t globalStep);

}  // namespace tools
