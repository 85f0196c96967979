// rpc/trace.h: records the events of one role with their times, in memory that is allocated
// beforehand.
#pragma once

#include <kj/array.h>
#include <kj/time.h>

#include <cstdint>

#include "rpc/placement.h"

namespace rpc {

// The steps that are recorded, including the first and the last one. Steps count from 0.
struct TraceSteps {
  uint64_t first = 0;
  uint64_t last = kj::maxValue;
};

// For modes in which not every step pushes (local_sgd): entry n is the last step of the block that
// a worker's n-th push is about, in ascending order. Empty if the n-th push is of step n.
using StepsOfPushes = kj::ArrayPtr<const uint64_t>;

// The kind of an event: a verb of a worker's compute thread, or a station on the journey of one
// slice's push for one step. Verbs and COUNTED take time. The other stations are moments.
enum class TracePoint : uint8_t {
  READ,
  FORWARD,
  BACKWARD,
  PUSH,
  PULL,
  QUEUED,    // the worker's compute thread has ordered the push
  SENT,      // the push was handed to the connection, or written to the ring
  ARRIVED,   // the push has arrived at the server
  COUNTED,   // the shard adds the push, and updates the slice if its round is full
  APPLIED,   // the push can be answered; in most modes, its round was applied
  ANSWERED,  // the server has made the answer, and is about to send it
  RETURNED   // the answer is in the worker's parameters
};

// One event of a TraceLane.
struct TraceEvent {
  int64_t begin_ns;  // on the machine's CLOCK_MONOTONIC
  int64_t end_ns;
  uint64_t step;    // by the worker's count
  uint32_t item;    // a segment for verbs, a slice for stations
  uint16_t worker;  // whose step or push it is
  TracePoint point;
};

// The events of one thread of a role. Only that thread adds events, and nobody reads them before it
// has ended. The constructor allocates all memory, so a step neither allocates nor locks. A full
// lane keeps its events, and only counts the dropped ones.
class TraceLane {
public:
  // The default limit: 4 MiB per thread, or about 20 MB of JSON.
  static constexpr size_t EVENTS_MAX = 1 << 17;

  // `stepsOfPushes` must outlive it.
  explicit TraceLane(
      TraceSteps steps, size_t eventsMax = EVENTS_MAX, StepsOfPushes stepsOfPushes = nullptr)
      : steps(steps), stepsOfPushes(stepsOfPushes), events(kj::heapArray<TraceEvent>(eventsMax)) {
    // Touches all pages now, so that no step has to.
    for (auto& event: events) event = {};
  }
  KJ_DISALLOW_COPY(TraceLane);

  kj::TimePoint now() const { return clock.now(); }

  // Adds an event. For stations, `step` is the number of the worker's push.
  void add(TracePoint point, uint worker, uint64_t step, uint item, kj::TimePoint begin,
      kj::TimePoint end) {
    if (point >= TracePoint::QUEUED && step < stepsOfPushes.size()) step = stepsOfPushes[step];
    if (step < steps.first || step > steps.last) return;
    if (count == events.size()) {
      ++lost;
      return;
    }
    events[count++] =
        TraceEvent{inNanoseconds(begin), inNanoseconds(end), step, item, uint16_t(worker), point};
  }
  // Adds a station of a slice, now.
  void add(TracePoint point, uint worker, uint64_t number, SliceId id) {
    auto moment = now();
    add(point, worker, number, id, moment, moment);
  }

  // Returns the events in the order in which they ended.
  kj::ArrayPtr<const TraceEvent> all() const { return events.slice(0, count); }
  // Returns how many events were dropped because the lane was full.
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

// Follows pushes through a shard, because an answer does not say which push it answers. Used on the
// thread of `lane`, which must outlive it.
class ShardTrace {
public:
  ShardTrace(TraceLane& lane, uint workers, size_t slices)
      : lane(lane), slices(slices), pushes(kj::heapArray<Push>(workers * slices)) {}

  // A push has arrived. Each worker has at most one push per slice in flight. A push that is
  // repeated after a broken connection keeps its state.
  void arrived(uint rank, uint64_t number, SliceId id) {
    since = lane.now();
    auto& push = of(rank, id);
    if (push.state != Push::NEVER && push.number == number) return;
    push = {number, 0, Push::HERE};
    lane.add(TracePoint::ARRIVED, rank, number, id, since, since);
  }
  // Shard::push() has returned `due`. reached() must follow before answered().
  void counted(uint rank, SliceId id, uint64_t due) {
    auto& push = of(rank, id);
    if (push.state != Push::HERE) return;
    auto end = lane.now();
    lane.add(TracePoint::COUNTED, rank, push.number, id, since, end);
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
      lane.add(TracePoint::APPLIED, rank, push.number, id);
    }
  }
  // The slice's values go to this worker, which has pushed or pulled.
  void answered(uint rank, SliceId id) {
    auto& push = of(rank, id);
    if (push.state != Push::APPLIED) return;
    push.state = Push::ANSWERED;
    lane.add(TracePoint::ANSWERED, rank, push.number, id);
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
  kj::TimePoint since = kj::origin<kj::TimePoint>();  // when the shard's work began
};

// The recording of one role.
struct Trace {
  // `eventsMax` is the limit per thread.
  explicit Trace(TraceSteps steps, kj::Array<uint64_t> ownStepsOfPushes = nullptr,
      size_t eventsMax = TraceLane::EVENTS_MAX)
      : stepsOfPushes(kj::mv(ownStepsOfPushes)),
        compute(steps, eventsMax, stepsOfPushes),
        io(steps, eventsMax, stepsOfPushes) {}

  // Makes `shard`, for a job with this number of workers and slices.
  ShardTrace& ofShard(uint workers, size_t slices) { return shard.emplace(io, workers, slices); }

  const kj::Array<const uint64_t> stepsOfPushes;
  TraceLane compute;  // of a worker's compute thread
  TraceLane io;
  kj::Maybe<ShardTrace> shard;  // null if the role holds no shard
};

}  // namespace rpc
