// runner/experiment/run_length.h: the length of an experiment's run, in steps and in updates.
#pragma once

#include "io/batches/division.h"
#include "nn/optimizer/schedule.h"
#include "runner/experiment/experiment.h"

namespace runner {

// Returns the steps of each worker in `epochs` whole epochs of `trainingRecords` records. With
// `division`, the workers of the job have changed.
uint64_t stepsIn(uint epochs, const Experiment& experiment, uint64_t trainingRecords,
    kj::Maybe<const io::Division&> division = nullptr);

// Returns the steps of each worker in the whole run.
uint64_t stepsOf(const Experiment& experiment, uint64_t trainingRecords,
    kj::Maybe<const io::Division&> division = nullptr);

// Returns the updates of each parameter by the optimizer.
nn::RunLength runLengthOf(const Experiment& experiment, uint64_t trainingRecords);

}  // namespace runner
