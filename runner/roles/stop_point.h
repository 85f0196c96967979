// runner/roles/stop_point.h: where a worker stops between two steps, to be saved.
#pragma once

#include <kj/mutex.h>

#include "runner/logs/job.capnp.h"

namespace runner {

// The io thread asks for a stop, and the compute thread looks before each step. A worker that has
// agreed to stop at a step never begins it before it was decided whether the job is saved there.
class StopPoint {
public:
  // What a worker answers when it is asked to stop before step number `step`, and how many steps it
  // has begun.
  struct Answer {
    StopAnswer answer;
    uint64_t begun;
  };

  // On the compute thread: an epoch has the steps from `begin` to before `end`.
  void beginEpoch(uint64_t begin, uint64_t end) const {
    auto lock = state.lockExclusive();
    lock->begun = begin;
    lock->end = end;
    lock->asked = nullptr;
  }
  // On the compute thread, before step number `step`: returns whether the worker has agreed to stop
  // here. If it has not, the step begins.
  bool isAsked(uint64_t step) const {
    auto lock = state.lockExclusive();
    KJ_IF_MAYBE(asked, lock->asked) {
      if (*asked == step) return true;
    }
    lock->begun = step + 1;
    return false;
  }
  // On the compute thread, after a stop: step number `step` begins.
  void goOn(uint64_t step) const {
    auto lock = state.lockExclusive();
    lock->begun = step + 1;
    if (lock->asked.orDefault(step) == step) lock->asked = nullptr;
  }

  // On the io thread: asks the worker to stop before step number `step`.
  Answer ask(uint64_t step) const {
    auto lock = state.lockExclusive();
    if (step < lock->begun) return {StopAnswer::PASSED, lock->begun};
    if (step >= lock->end) return {StopAnswer::EPOCH_ENDS, lock->begun};
    lock->asked = step;
    return {StopAnswer::YES, lock->begun};
  }
  // On the io thread: takes back what ask() has asked for.
  void cancel() const { state.lockExclusive()->asked = nullptr; }

private:
  struct State {
    uint64_t begun = 0;
    uint64_t end = 0;
    kj::Maybe<uint64_t> asked;
  };
  kj::MutexGuarded<State> state;
};

}  // namespace runner
