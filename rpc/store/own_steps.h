// rpc/store/own_steps.h: the store of workers that make several steps without the others.
#pragma once

#include "rpc/shared_memory/shared_memory.h"
#include "rpc/store/kv_store.h"

namespace rpc {

// How a worker combines its values with those of the others after a block of steps.
struct OwnSteps {
  uint steps;  // per block, 1 or more
  // Null: the worker continues with the values that the shards answer, so that all workers begin
  // the next block with the same values (local SGD). Then a round must take a push of every worker.
  // Otherwise the worker continues with x ← x + drawn · (answered - x) (elastic averaging).
  kj::Maybe<float> drawn = nullptr;
};

// Makes a store whose push() immediately updates the worker's own values, with its own gradient and
// state (local SGD with local momentum). After each block, the worker pushes the difference between
// the last answer of the shards and its values (answered - own). Its next step waits for the answer
// to that push. rest() ends a block that has begun. Workers that make the same number of steps
// therefore end their blocks together.
//
// refresh() copies the shards' values to `parameters`. With `drawn`, the worker's next step still
// continues with its own values.
//
// `updater` makes the worker's own updates of `parameters`, numbered by its steps. `gradients` are
// read within push(). All ranges of a step must be pushed before await() of the next step. The
// shards keep the values after each round, and their updater gets sums of differences. With a
// worker's `memory`, the differences are kept there, so that servers on this machine can read them
// (see RemoteStore). All arguments must outlive the store.
kj::Own<KvStore> newOwnStepsStore(const Placement& placement, const Rounds& rounds, uint rank,
    OwnSteps ownSteps, Updater& updater, kj::ArrayPtr<float> parameters,
    kj::ArrayPtr<const float> gradients, kj::Maybe<SharedMemory&> memory = nullptr);

}  // namespace rpc
