// runner/experiment/run_length.h: the length of an experiment's run, in steps and in updates.
#pragma once

#include "io/batches/division.h"
#include "nn/optimizer/schedule.h"
#include "runner/experiment/experiment.h"

namespace runner {

// In this file, `passLength` is that of io::Stream.

// Returns how the workers divide the records of the stream, with these changes of the members.
io::Division divisionOf(const Experiment& experiment, uint64_t passLength,
    kj::ArrayPtr<const io::MemberChange> changes = nullptr);

// Whether the run continues one with another number of workers ([continued]), and the workers
// divide the records among them.
bool wasDividedOtherwise(const Experiment& experiment);

// Returns the steps of each worker in `epochs` whole epochs of `passLength` records. With
// `division`, the workers of the job have changed.
uint64_t stepsIn(uint epochs, const Experiment& experiment, uint64_t passLength,
    kj::Maybe<const io::Division&> division = nullptr);

// Returns the steps of each worker in the whole run.
uint64_t stepsOf(const Experiment& experiment, uint64_t passLength,
    kj::Maybe<const io::Division&> division = nullptr);

// Returns the updates of each parameter by the optimizer.
nn::RunLength runLengthOf(const Experiment& experiment, uint64_t passLength);

// Returns the same in steps of a worker, for updates that each worker makes by itself.
nn::RunLength ownLengthOf(const Experiment& experiment, uint64_t passLength,
    kj::Maybe<const io::Division&> division = nullptr);

// Returns how many updates each parameter has received in a run by the end of epoch `epoch`.
uint64_t updatesUntilEndOf(uint64_t epoch, const Experiment& experiment, uint64_t passLength);

}  // namespace runner
