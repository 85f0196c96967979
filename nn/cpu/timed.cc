#include "nn/cpu/timed.h"

#include <kj/time.h>

namespace nn::cpu {
namespace {

// Records the time from its construction to its destruction.
class Watch {
public:
  Watch(const Account& account, uint lane)
      : account(account),
        lane(lane),
        clock(kj::systemPreciseMonotonicClock()),
        begin(clock.now()) {}
  ~Watch() {
    account.profile.add(account.firstLane + lane, account.node, account.direction,
        (clock.now() - begin) / kj::NANOSECONDS);
  }
  KJ_DISALLOW_COPY(Watch);

private:
  const Account& account;
  uint lane;
  const kj::MonotonicClock& clock;
  kj::TimePoint begin;
};

class TimedTask final: public Task {
public:
  TimedTask(kj::Own<Task> task, Account account): task(kj::mv(task)), account(account) {}

  void prepare(kj::ArrayPtr<const uint> sizes) override { task->prepare(sizes); }
  void run(const Step& step, const Chunk& chunk) override {
    Watch watch(account, chunk.lane);
    task->run(step, chunk);
  }

private:
  kj::Own<Task> task;
  Account account;
};

}  // namespace

kj::Own<Task> timed(kj::Own<Task> task, Account account) {
  return kj::heap<TimedTask>(kj::mv(task), account);
}
kj::Own<BatchTask> timed(kj::Own<BatchTask> task, Account account) {
  return newBatchTask(
      [task = kj::mv(task), account](const Step& step, uint part, uint parts) mutable {
        Watch watch(account, part);
        task->run(step, part, parts);
      });
}

}  // namespace nn::cpu
