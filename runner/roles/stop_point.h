// runner/roles/stop_point.h: where a worker stops between two steps, to be saved or to apply
// changes of the members.
#pragma once

#include <kj/mutex.h>
#include <atomic>

#include "io/batches/division.h"
#include "runner/logs/job.capnp.h"

namespace runner {

// The io thread asks for a stop, and the compute thread looks before each step. A worker that has
// agreed to stop at a step never begins the step before the coordinator has decided whether to save
// the job there.
class StopPoint {
public:
  // A worker's answer to the request to stop before step number `step`, and how many steps it has
  // begun.
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

  // On the compute thread: the epoch now ends before step number `end`.
  void moveEnd(uint64_t end) const { state.lockExclusive()->end = end; }
  // On the compute thread, between two steps: returns the latest list of tellChanges() if there was
  // one since the last call. Takes no lock if there was none.
  kj::Maybe<kj::Array<const io::MemberChange>> takeChanges() const {
    if (!hasChanges.load(std::memory_order_acquire)) return nullptr;
    auto lock = state.lockExclusive();
    hasChanges = false;
    return kj::heapArray<const io::MemberChange>(lock->changes);
  }

  // On the io thread: asks the worker to leave the job before its next step.
  void askToLeave() const { leaves = true; }
  // On the compute thread, between two steps: whether askToLeave() was called.
  bool isToLeave() const { return leaves; }

  // On the io thread: passes all changes of the job's members since the beginning of the run. A
  // list that is older than the last one has no effect.
  void tellChanges(kj::Array<io::MemberChange> changes) const {
    auto lock = state.lockExclusive();
    if (changes.size() <= lock->changes.size()) return;
    lock->changes = kj::mv(changes);
    hasChanges.store(true, std::memory_order_release);
  }
  // On the io thread: asks the worker to stop before step number `step`.
  Answer ask(uint64_t step) const {
    auto lock = state.lockExclusive();
    if (step < lock->begun) return {StopAnswer::PASSED, lock->begun};
    if (step >= lock->end) return {StopAnswer::EPOCH_ENDS, lock->begun};
    lock->asked = step;
    return {StopAnswer::YES, lock->begun};
  }
  // On the io thread: cancels the request of ask().
  void cancel() const { state.lockExclusive()->asked = nullptr; }

private:
  struct State {
    uint64_t begun = 0;
    uint64_t end = 0;
    kj::Maybe<uint64_t> asked;
    kj::Array<io::MemberChange> changes;
  };
  kj::MutexGuarded<State> state;
  mutable std::atomic<bool> hasChanges{false};
  mutable std::atomic<bool> leaves{false};
};

}  // namespace runner
