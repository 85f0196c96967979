#include "rpc/testing/test_schedule.h"

#include <kj/debug.h>
#include <math.h>

#include "rpc/testing/push_trace.h"
#include "rpc/testing/test_model.h"

namespace rpc {

namespace {

class Schedule {
public:
  Schedule(const Setting& setting, Servers& servers, uint64_t delays)
      : setting(setting), servers(servers), dice(delays) {}

  Happened run(uint64_t seed) {
    Dice plan(seed);
    draw(plan);
    for (uint rank = 0; rank < setting.rounds.workers; rank++) pull(rank);
    while (events.size() > 0) {
      Event event = takeNext();
      now = event.time;
      switch (event.what) {
        case Event::ARRIVES:
          arrive(*calls[event.index]);
          break;
        case Event::IS_ANSWERED:
          receive(*calls[event.index]);
          break;
        case Event::COMPUTED:
          push(event.index);
          break;
        case Event::BREAKS:
          reconnect(event.index);
          break;
      }
      settle();
    }
    for (auto& worker: workers) {
      KJ_REQUIRE(worker.stage == Worker::GONE, "a deadlock: a worker is still in", worker.stage);
    }
    sumUp();
    return happened;
  }

private:
  struct Event {
    uint64_t time;
    enum What { ARRIVES, IS_ANSWERED, COMPUTED, BREAKS } what;
    uint index;  // of the call, or the rank
  };

  struct Worker {
    enum Stage { PULLING, COMPUTING, PUSHING, RESTING, MEETING, GONE };
    Stage stage = PULLING;
    uint session = 0;
    uint epoch = 0;
    uint64_t left = 0;  // steps of the epoch
    uint64_t step = 0;
    uint64_t stepTime = 1;
    kj::Vector<uint> open;  // calls without an answer
  };

  void draw(Dice& plan) {
    uint count = setting.rounds.workers;
    delayMax = dice.onceIn(3) ? 1 : dice.onceIn(2) ? 10 : 100;
    breaks = dice.onceIn(2) ? dice.roll(1, 12) : 0;
    epochs = plan.roll(1, 3);
    auto equal = setting.rounds.counted == Rounds::ALL || plan.onceIn(2);
    for (uint epoch = 0; epoch < epochs; epoch++) {
      auto common = plan.roll(0, 6);
      for (uint rank = 0; rank < count; rank++) {
        // A worker that leaves for good makes no more steps, and rests in every epoch.
        bool gone = epoch > 0 && steps[(epoch - 1) * count + rank] == 0 && plan.onceIn(2);
        steps.add(equal ? common : gone ? 0 : plan.roll(0, 6));
      }
    }
    for (uint rank = 0; rank < count; rank++) {
      auto& worker = workers.add();
      worker.stepTime = dice.onceIn(2) ? dice.roll(1, 10) : dice.roll(1, 200);
    }
    for (auto& slice: setting.placement.slices) {
      models.add(kj::heap<SliceModel>(
          setting.rounds, setting.rule, slice.of(setting.initial.asPtr().asConst())));
      traces.add();
      for (uint rank = 0; rank < count; rank++) rested.add(0);
    }
  }

  // Returns the earliest event. Of several, the one that was planned first.
  Event takeNext() {
    size_t first = 0;
    for (auto i: kj::indices(events)) {
      if (events[i].time < events[first].time) first = i;
    }
    Event event = events[first];
    for (size_t i = first + 1; i < events.size(); i++) events[i - 1] = events[i];
    events.removeLast();
    return event;
  }

  void plan(uint64_t delay, Event::What what, uint index) {
    events.add(Event{now + delay, what, index});
  }

  Call& send(Call::What what, uint rank, uint shard, uint64_t number, kj::Array<SliceId> slices) {
    auto& worker = workers[rank];
    kj::Array<kj::Array<float>> gradients;
    if (what == Call::PUSH) {
      gradients = KJ_MAP(id, slices) {
        return gradientOf(rank, id, number);
      };
    }
    uint index = calls.size();
    calls.add(kj::heap<Call>(
        Call{what, rank, shard, worker.session, number, kj::mv(slices), kj::mv(gradients), index}));
    worker.open.add(index);
    plan(dice.roll(1, delayMax), Event::ARRIVES, index);
    if (breaks > 0 && dice.onceIn(10)) {
      breaks--;
      plan(dice.roll(0, 50), Event::BREAKS, rank);
    }
    return *calls.back();
  }

  // All slices, in calls of random sizes.
  void sendAll(Call::What what, uint rank, uint64_t number) {
    for (auto shard: kj::indices(setting.placement.shards)) {
      kj::Vector<SliceId> group;
      for (auto id: setting.placement.shards[shard]) {
        if (group.size() > 0 && dice.onceIn(2)) {
          send(what, rank, shard, number, group.releaseAsArray());
          group = {};
        }
        group.add(id);
      }
      if (group.size() > 0) send(what, rank, shard, number, group.releaseAsArray());
    }
  }

  void pull(uint rank) {
    workers[rank].stage = Worker::PULLING;
    sendAll(Call::PULL, rank, 0);
  }

  void push(uint rank) {
    workers[rank].stage = Worker::PUSHING;
    sendAll(Call::PUSH, rank, workers[rank].step);
  }

  kj::Array<float> gradientOf(uint rank, SliceId id, uint64_t step) {
    auto& slice = setting.placement.slices[id];
    auto gradient = kj::heapArray<float>(slice.size);
    for (auto i: kj::indices(gradient)) {
      gradient[i] = setting.gradient(noise(rank, slice.offset + i, step));
    }
    return gradient;
  }

  // Whether the connection is broken over which the call was sent.
  bool isLate(const Call& call) const {
    return call.session != workers[call.rank].session && !setting.isOwn(call.rank, call.shard);
  }

  void arrive(Call& call) {
    bool late = isLate(call);
    auto counts = KJ_MAP(id, call.slices) {
      return call.what == Call::PUSH && models[id]->steps(call.rank) == call.number;
    };
    bool counted = true;
    if (late) {
      counted = servers.deliverLate(call, counts);
    } else {
      servers.deliver(call, counts);
      waiting.add(call.index);
    }
    if (!counted) return;
    if (call.what == Call::PUSH) {
      for (auto i: kj::indices(call.slices)) {
        auto id = call.slices[i];
        if (models[id]->push(call.rank, call.number, call.gradients[i])) {
          traces[id].pushed(call.rank);
        } else {
          happened.repeats++;
        }
      }
    } else if (call.what == Call::REST) {
      for (auto id: setting.placement.shards[call.shard]) {
        auto& begun = rested[id * setting.rounds.workers + call.rank];
        if (begun > call.number) continue;
        begun++;
        models[id]->rest(call.rank);
        traces[id].rests(call.rank);
      }
    }
  }

  // Compares which calls are answered, their values, and all that is visible.
  void settle() {
    kj::Vector<uint> stay;
    for (auto index: waiting) {
      auto& call = *calls[index];
      bool expected = true;
      if (call.what == Call::PUSH) {
        for (auto id: call.slices) expected = expected && models[id]->isAnswered(call.rank);
      }
      if (isLate(call)) continue;
      KJ_REQUIRE(servers.isAnswered(call) == expected, "who waits", call.rank, call.number,
          call.slices, expected);
      if (!expected) {
        stay.add(index);
        if (!call.waited) happened.waited++;
        call.waited = true;
        continue;
      }
      if (call.what != Call::REST) takeAnswer(call);
      plan(dice.roll(1, delayMax), Event::IS_ANSWERED, index);
    }
    waiting = kj::mv(stay);
    servers.compare(models);
  }

  void takeAnswer(Call& call) {
    for (auto i: kj::indices(call.slices)) {
      auto id = call.slices[i];
      auto& model = *models[id];
      auto answer = servers.take(call, i);
      KJ_REQUIRE(answer.version == model.version(), id, call.rank, call.number);
      KJ_REQUIRE(answer.values.size() == model.newest().size());
      for (auto k: kj::indices(answer.values)) {
        double expected = model.newest()[k];
        KJ_REQUIRE(fabs(answer.values[k] - expected) <= setting.rule.tolerance,
            "other values than the model's", id, k, call.rank, call.number, answer.version,
            answer.values[k], expected);
      }
      model.read(call.rank);
      if (call.what != Call::PUSH) continue;
      if (traces[id].proves(setting.rounds, call.rank, model)) happened.reads++;
    }
  }

  // An answer has come back.
  void receive(Call& call) {
    if (isLate(call)) return;  // lost
    auto& worker = workers[call.rank];
    kj::Vector<uint> open;
    for (auto index: worker.open) {
      if (index != call.index) open.add(index);
    }
    worker.open = kj::mv(open);
    if (worker.open.size() == 0) goOn(call.rank);
  }

  void goOn(uint rank) {
    auto& worker = workers[rank];
    switch (worker.stage) {
      case Worker::PULLING:
        worker.left = steps[worker.epoch * setting.rounds.workers + rank];
        computeOrRest(rank);
        return;
      case Worker::PUSHING:
        worker.step++;
        worker.left--;
        computeOrRest(rank);
        return;
      case Worker::RESTING:
        worker.stage = Worker::MEETING;
        meet();
        return;
      case Worker::COMPUTING:
      case Worker::MEETING:
      case Worker::GONE:
        break;
    }
    KJ_FAIL_REQUIRE("an answer to nobody", rank, worker.stage);
  }

  void computeOrRest(uint rank) {
    auto& worker = workers[rank];
    if (worker.left > 0) {
      worker.stage = Worker::COMPUTING;
      plan(dice.roll(worker.stepTime, 2 * worker.stepTime), Event::COMPUTED, rank);
      return;
    }
    worker.stage = Worker::RESTING;
    for (auto shard: kj::indices(setting.placement.shards)) {
      send(Call::REST, rank, shard, worker.epoch, nullptr);
    }
  }

  void meet() {
    for (auto& worker: workers) {
      if (worker.stage != Worker::MEETING) return;
    }
    for (auto rank: kj::indices(workers)) {
      if (++workers[rank].epoch < epochs) {
        pull(rank);
      } else {
        workers[rank].stage = Worker::GONE;
      }
    }
  }

  // Unanswered calls are repeated. Calls in flight are lost, or arrive late.
  void reconnect(uint rank) {
    auto& worker = workers[rank];
    if (worker.stage == Worker::GONE) return;
    happened.breaks++;
    worker.session++;
    servers.reconnect(rank);
    kj::Vector<Event> stay;
    for (auto& event: events) {
      bool lost = event.what == Event::ARRIVES && calls[event.index]->rank == rank &&
                  isLate(*calls[event.index]) && dice.onceIn(2);
      if (!lost) stay.add(event);
    }
    events = kj::mv(stay);
    auto open = kj::mv(worker.open);
    worker.open = {};
    for (auto index: open) {
      auto& call = *calls[index];
      if (!isLate(call)) {
        worker.open.add(index);
        continue;
      }
      send(call.what, rank, call.shard, call.number, kj::heapArray(call.slices.asPtr()));
    }
  }

  void sumUp() {
    for (auto& model: models) {
      happened.pushed += model->pushed();
      happened.dropped += model->dropped();
      happened.stale += model->appliedLate();
    }
  }

  const Setting& setting;
  Servers& servers;
  Dice dice;
  Happened happened;
  uint64_t delayMax = 1;
  uint64_t breaks = 0;  // of connections, still to be made
  uint epochs = 1;
  kj::Vector<uint64_t> steps;  // of rank r in epoch e: [e * workers + r]
  kj::Vector<Worker> workers;
  kj::Vector<kj::Own<SliceModel>> models;  // of each slice
  kj::Vector<PushTrace> traces;            // of each slice
  kj::Vector<uint64_t> rested;  // times that rank r has rested for slice i: [i * workers + r]
  kj::Vector<kj::Own<Call>> calls;
  kj::Vector<uint> waiting;  // delivered calls of newest sessions without an answer
  kj::Vector<Event> events;
  uint64_t now = 0;
};

}  // namespace

void Happened::add(const Happened& other) {
  pushed += other.pushed;
  dropped += other.dropped;
  waited += other.waited;
  breaks += other.breaks;
  repeats += other.repeats;
  stale += other.stale;
  reads += other.reads;
}

Happened runSchedule(const Setting& setting, Servers& servers, uint64_t seed, uint64_t delays) {
  return Schedule(setting, servers, delays).run(seed);
}

}  // namespace rpc
