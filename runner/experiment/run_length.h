// runner/experiment/run_length.h: how long the run of an experiment is, in steps and in updates.
#pragma once

#include "nn/optimizer/schedule.h"
#include "runner/experiment/experiment.h"

namespace runner {

// Steps of each worker in `epochs` whole epochs of so many records that are trained on.
uint64_t stepsIn(uint epochs, const Experiment& experiment, uint64_t trainingRecords);

// Steps of each worker in the whole run.
uint64_t stepsOf(const Experiment& experiment, uint64_t trainingRecords);

// Updates of each parameter by the optimizer.
nn::RunLength runLengthOf(const Experiment& experiment, uint64_t trainingRecords);

}  // namespace runner
