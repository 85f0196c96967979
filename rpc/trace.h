// rpc/trace.h: what happened when in one role, recorded into memory that is there beforehand.
#pragma once

#include <kj/array.h>
#include <kj/time.h>

#include <cstdint>

#include "rpc/placement.h"

namespace rpc {

// The steps that are recorded, first and last included; they count from 0.
struct TraceSteps {
  uint64_t first = 0;
  uint64_t last = kj::maxValue;
};

// The step that ends what a worker's n-th push is of, in rising order, where not every step pushes
// (local_sgd); empty: the n-th.
using StepsOfPushes = kj::ArrayPtr<const uint64_t>;

// The verbs of a worker's compute thread, and the stations of a push of one slice for one step.
// What takes time is an event with a beginning and an end, a station a moment.
enum class Mark : uint8_t {
  READ,
  FORWARD,
  BACKWARD,
  PUSH,
  PULL,
  QUEUED,    // at the worker: its compute thread has ordered it
  SENT,      // it is handed to the connection, or written to the ring
  ARRIVED,   // at the server
  COUNTED,   // takes time: the shard adds it, and updates the slice if its round is full
  APPLIED,   // what answers it is there: mostly, that its round was applied
  ANSWERED,  // the server has made the answer, and hands it over next
  RETURNED   // the answer is in the worker's parameters
};

struct TraceEvent {
  int64_t begin_ns;  // of the machine's CLOCK_MONOTONIC
  int64_t end_ns;
  uint64_t step;    // the worker's own count
  uint32_t item;    // a segment for the verbs, else a slice
  uint16_t worker;  // whose push it is
  Mark mark;
};

// The events of one thread of a role; only that thread adds to it, and nobody reads before it has
// ended. Takes its memory at once: in a step it neither allocates nor locks. Once it is full, the
// oldest events stay, and further ones are only counted.
class TraceLane {
public:
  // 4 MiB a thread, and some 20 MB of JSON.
  static constexpr size_t EVENTS_MAX = 1 << 17;

  // `stepsOfPushes` outlives it.
  explicit TraceLane(
      TraceSteps steps, size_t eventsMax = EVENTS_MAX, StepsOfPushes stepsOfPushes = nullptr)
      : steps(steps), stepsOfPushes(stepsOfPushes), events(kj::heapArray<TraceEvent>(eventsMax)) {
    // So that no page is first touched in a step.
    for (auto& event: events) event = {};
  }
  KJ_DISALLOW_COPY(TraceLane);

  kj::TimePoint now() const { return clock.now(); }

  // `step` of a station, and of COUNTED, is the number of the worker's push.
  void add(
      Mark mark, uint worker, uint64_t step, uint item, kj::TimePoint begin, kj::TimePoint end) {
    if (mark >= Mark::QUEUED && step < stepsOfPushes.size()) step = stepsOfPushes[step];
    if (step < steps.first || step > steps.last) return;
    if (count == events.size()) {
      ++lost;
      return;
    }
    events[count++] =
        TraceEvent{inNanoseconds(begin), inNanoseconds(end), step, item, uint16_t(worker), mark};
  }
  // A station of a slice, now.
  void add(Mark mark, uint worker, uint64_t number, SliceId id) {
    auto moment = now();
    add(mark, worker, number, id, moment, moment);
  }

  // In the order in which they ended.
  kj::ArrayPtr<const TraceEvent> all() const { return events.slice(0, count); }
  // How many came when it was full.
  uint64_t dropped() const { return lost; }

private:
  static int64_t inNanoseconds(kj::TimePoint time) {
    return (time - kj::origin<kj::TimePoint>()) / kj::NANOSECONDS;
  }

  const kj::MonotonicClock& clock = kj::systemPreciseMonotonicClock();
  const TraceSteps steps;
  const StepsOfPushes stepsOfPushes;
  kj::Array<TraceEvent> events;
  size_t count = 0;
  uint64_t lost = 0;
};

// Follows pushes through a shard, whose answers do not tell what they answer. One thread, that of
// `lane`, which outlives it.
class ShardTrace {
public:
  ShardTrace(TraceLane& lane, uint workers, size_t slices)
      : lane(lane), slices(slices), pushes(kj::heapArray<Push>(workers * slices)) {}

  // A push has come. Each worker has at most one of a slice under way. One that comes again, after
  // its connection broke, goes on from where it was.
  void arrived(uint rank, uint64_t number, SliceId id) {
    since = lane.now();
    auto& push = of(rank, id);
    if (push.state != Push::NEVER && push.number == number) return;
    push = {number, 0, Push::HERE};
    lane.add(Mark::ARRIVED, rank, number, id, since, since);
  }
  // Shard::push() has returned `due`. reached() must follow before answered().
  void counted(uint rank, SliceId id, uint64_t due) {
    auto& push = of(rank, id);
    if (push.state != Push::HERE) return;
    auto end = lane.now();
    lane.add(Mark::COUNTED, rank, push.number, id, since, end);
    since = end;
    push.due = due;
    push.state = Push::WAITS;
  }
  // The slice's progress is now `progress`.
  void reached(SliceId id, uint64_t progress) {
    for (uint rank = 0; rank < pushes.size() / slices; rank++) {
      auto& push = of(rank, id);
      if (push.state != Push::WAITS || progress < push.due) continue;
      push.state = Push::APPLIED;
      lane.add(Mark::APPLIED, rank, push.number, id);
    }
  }
  // The slice's values are on their way to this worker: whether it has pushed or pulled.
  void answered(uint rank, SliceId id) {
    auto& push = of(rank, id);
    if (push.state != Push::APPLIED) return;
    push.state = Push::ANSWERED;
    lane.add(Mark::ANSWERED, rank, push.number, id);
  }

private:
  struct Push {
    uint64_t number = 0;
    uint64_t due = 0;
    enum { NEVER, HERE, WAITS, APPLIED, ANSWERED } state = NEVER;
  };

  Push& of(uint rank, SliceId id) { return pushes[rank * slices + id]; }

  TraceLane& lane;
  const size_t slices;
  kj::Array<Push> pushes;
  kj::TimePoint since = kj::origin<kj::TimePoint>();  // the shard may have worked
};

// A role's.
struct Trace {
  // `eventsMax` is a thread's.
  explicit Trace(TraceSteps steps, kj::Array<uint64_t> ownStepsOfPushes = nullptr,
      size_t eventsMax = TraceLane::EVENTS_MAX)
      : stepsOfPushes(kj::mv(ownStepsOfPushes)),
        compute(steps, eventsMax, stepsOfPushes),
        io(steps, eventsMax, stepsOfPushes) {}

  // Makes `shard`, whose job has so many workers and slices.
  ShardTrace& ofShard(uint workers, size_t slices) { return shard.emplace(io, workers, slices); }

  const kj::Array<const uint64_t> stepsOfPushes;
  TraceLane compute;  // a worker's alone
  TraceLane io;
  kj::Maybe<ShardTrace> shard;  // of the shard that the role holds, if it does
};

}  // namespace rpc
