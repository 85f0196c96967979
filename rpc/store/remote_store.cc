#include "rpc/store/remote_store.h"

#include <kj/debug.h>

#include "rpc/store/exchange.h"

namespace rpc {

namespace {

class RemoteStoreImpl final: public RemoteStore {
public:
  RemoteStoreImpl(const Placement& placement, const Rounds& rounds, uint rank,
      kj::ArrayPtr<float> parameters, kj::ArrayPtr<const float> gradients,
      kj::Maybe<SharedMemory&> memory);

  void initialize() override { complete(Order::INITIALIZE); }
  void push(uint64_t step, uint64_t begin, uint64_t end) override;
  void pushLast(uint64_t step, kj::ArrayPtr<const SliceId> slices) override;
  void await(uint64_t step, uint64_t begin, uint64_t end) override;
  void rest() override;
  void visitState(configs::StateVisitor& visitor) override;
  void forgetOwn() override;
  void resume() override;
  void refresh() override { complete(Order::REFRESH); }
  uint64_t updates() const override { return handover.state.lockShared()->updates; }
  kj::Promise<void> run(Servers servers) override { return exchange(handover, kj::mv(servers)); }
  void fail(kj::Exception reason) override { handover.state.lockExclusive()->fail(kj::mv(reason)); }
  void traceTo(Trace& trace) override;
  bool areParametersOnShards() const override {
    return handover.rounds.counted == Rounds::ALL && !keepsAnswers();
  }
  void shareThread(kj::Function<void()> yield) override { handover.yield = kj::mv(yield); }
  kj::Array<Traffic> traffic() const override {
    return kj::heapArray<Traffic>(handover.state.lockShared()->traffic);
  }

private:
  void push(uint64_t step, SliceRange slices);
  void complete(Order::What what, uint64_t number = 0);
  void visitTraffic(configs::StateVisitor& visitor);
  void awaitShared(uint64_t step, SliceRange slices);
  // Whether a checkpoint has the values of this worker, which may differ from those of the shards.
  // (In modes where each push is a round, workers continue with the shards' newest values, so that
  // the shards know which values a push was computed on.) Does not depend on the number of workers,
  // which may change between two runs.
  bool keepsAnswers() const {
    return handover.rounds.counted != Rounds::EACH && !handover.rounds.answers().isFloats();
  }
  void throwIfFailed() const { handover.state.lockShared()->throwIfFailed(); }
  // Whether pushes of this slice, and their answers, go through shared memory.
  bool isShared(SliceId id) const {
    return handover.sharesWith(handover.placement.slices[id].shard);
  }

  Handover handover;
  // For the compute thread only.
  kj::Array<uint64_t> pushed;  // per slice: pushes
  uint64_t ordered = 0;        // orders other than pushes
  uint64_t rests = 0;          // of them, those to rest
};

RemoteStoreImpl::RemoteStoreImpl(const Placement& placement, const Rounds& rounds, uint rank,
    kj::ArrayPtr<float> parameters, kj::ArrayPtr<const float> gradients,
    kj::Maybe<SharedMemory&> memory)
    : handover{placement, rounds, rank, parameters, gradients,
          PushEncoder(rounds.codec, placement, rounds.usualWorkers()), nullptr},
      pushed(kj::heapArray<uint64_t>(placement.slices.size())) {
  KJ_REQUIRE(rank < rounds.workers, rank, rounds.workers);
  KJ_REQUIRE(parameters.size() == placement.parameters());
  KJ_REQUIRE(gradients.size() == placement.parameters());
  for (auto& count: pushed) count = 0;
  auto answered = kj::heapArray<uint64_t>(placement.slices.size());
  for (auto& count: answered) count = 0;
  auto lock = handover.state.lockExclusive();
  lock->answered = kj::mv(answered);
  lock->traffic = kj::heapArray<Traffic>(placement.shards.size());
  KJ_IF_MAYBE(own, memory) {
    auto shared = kj::heap<SharedServers>(placement, rounds, *own);
    lock->sleeper = shared->sleeper();
    handover.shared = kj::mv(shared);
  }
}

void RemoteStoreImpl::traceTo(Trace& trace) {
  handover.trace = trace;
  KJ_IF_MAYBE(shared, handover.shared) (*shared)->traceTo(trace.compute, handover.rank);
}

void RemoteStoreImpl::complete(Order::What what, uint64_t number) {
  handover.give(Order{what, number, {0, SliceId(handover.placement.slices.size())}});
  ++ordered;
  handover.wait([&](const Handover::State& now) { return now.completed >= ordered; });
}

void RemoteStoreImpl::push(uint64_t step, uint64_t begin, uint64_t end) {
  push(step, handover.placement.slicesOf(begin, end));
}

void RemoteStoreImpl::pushLast(uint64_t step, kj::ArrayPtr<const SliceId> slices) {
  for (auto id: slices) push(step, {id, id + 1});
  rest();
}

void RemoteStoreImpl::push(uint64_t step, SliceRange slices) {
  throwIfFailed();
  for (SliceId id = slices.begin; id < slices.end;) {
    auto begin = id;
    bool shared = isShared(id);
    for (; id < slices.end && isShared(id) == shared; id++) {
      pushed[id] = step + 1;
      KJ_IF_MAYBE(trace, handover.trace)
        trace->compute.add(TracePoint::QUEUED, handover.rank, step, id);
      if (shared) KJ_ASSERT_NONNULL(handover.shared)->push(id, step);
    }
    if (!shared) handover.give(Order{Order::PUSH, step, {begin, id}});
  }
  KJ_IF_MAYBE(shared, handover.shared) (*shared)->wakeServers();
}

// Waits for the answers that come through shared memory.
void RemoteStoreImpl::awaitShared(uint64_t step, SliceRange slices) {
  KJ_IF_MAYBE(shared, handover.shared) {
    if (!(*shared)->await(slices, step, handover.parameters, [this]() { throwIfFailed(); })) return;
    auto lock = handover.state.lockExclusive();
    lock->updates = kj::max(lock->updates, (*shared)->updates());
    (*shared)->addTraffic(lock->traffic);
  }
}

void RemoteStoreImpl::await(uint64_t step, uint64_t begin, uint64_t end) {
  auto slices = handover.placement.slicesOf(begin, end);
  for (SliceId id = slices.begin; id < slices.end; id++) {
    KJ_REQUIRE(pushed[id] >= step, "this wait would never end: the step before was not pushed", id,
        step, pushed[id]);
  }
  // Waits for answers through shared memory, then for those over connections. That takes no longer
  // than to wait for both at once.
  awaitShared(step, slices);
  handover.wait([&](const Handover::State& now) {
    // A slice that was answered stays answered.
    while (slices.begin < slices.end &&
           (isShared(slices.begin) || now.answered[slices.begin] >= step)) {
      slices.begin++;
    }
    return slices.begin == slices.end;
  });
}

void RemoteStoreImpl::rest() {
  for (SliceId id: kj::indices(pushed)) awaitShared(pushed[id], {id, id + 1});
  handover.wait([&](const Handover::State& now) {
    for (SliceId id: kj::indices(pushed)) {
      if (!isShared(id) && now.answered[id] < pushed[id]) return false;
    }
    return true;
  });
  if (handover.rounds.needsRest()) complete(Order::REST, rests++);
}

void RemoteStoreImpl::visitState(configs::StateVisitor& visitor) {
  uint64_t steps = pushed.size() == 0 ? 0 : pushed[0];
  visitor.count("store.steps", steps);
  visitor.count("store.rests", rests);
  handover.encoder.visitState(visitor, steps);
  // The shards' values are exact, and those that came in answers may be rounded.
  if (keepsAnswers()) visitor.floats("store.answers", handover.parameters);
  visitTraffic(visitor);
  for (auto& count: pushed) count = steps;
  auto lock = handover.state.lockExclusive();
  for (auto& count: lock->answered) count = steps;
  KJ_IF_MAYBE(shared, handover.shared) (*shared)->resumeAfter(steps);
}

void RemoteStoreImpl::visitTraffic(configs::StateVisitor& visitor) {
  // The io thread may count another reconnect at any time.
  auto lock = handover.state.lockExclusive();
  for (auto i: kj::indices(lock->traffic)) {
    auto& each = lock->traffic[i];
    uint64_t roundTrips_ns = each.roundTrips / kj::NANOSECONDS;
    uint64_t roundTripMax_ns = each.roundTripMax / kj::NANOSECONDS;
    uint64_t counts[] = {each.calls, each.pushed_bytes, each.pulled_bytes, roundTrips_ns,
        roundTripMax_ns, each.waitingMax_bytes, each.reconnects};
    visitor.counts(kj::str("store.traffic.", i), counts);
    each.calls = counts[0];
    each.pushed_bytes = counts[1];
    each.pulled_bytes = counts[2];
    each.roundTrips = counts[3] * kj::NANOSECONDS;
    each.roundTripMax = counts[4] * kj::NANOSECONDS;
    each.waitingMax_bytes = counts[5];
    each.reconnects = counts[6];
  }
}

void RemoteStoreImpl::forgetOwn() {
  configs::StateEraser eraser;
  handover.encoder.visitState(eraser, pushed.size() == 0 ? 0 : pushed[0]);
  visitTraffic(eraser);
}

void RemoteStoreImpl::resume() {
  kj::ArrayPtr<float> values = handover.parameters;
  kj::Array<float> answers;
  // In modes where workers rest for a checkpoint, they continue with the newest values.
  bool goesOnWithAnswers = keepsAnswers() && !handover.rounds.needsRest();
  if (goesOnWithAnswers) answers = kj::heapArray<float>(values);
  auto before = traffic();
  complete(Order::RESUME);
  if (goesOnWithAnswers) copy(answers, values);
  // A run without a break would not have fetched these values.
  auto lock = handover.state.lockExclusive();
  for (auto i: kj::indices(before)) lock->traffic[i].pulled_bytes = before[i].pulled_bytes;
}

}  // namespace

kj::Own<RemoteStore> RemoteStore::create(const Placement& placement, const Rounds& rounds,
    uint rank, kj::ArrayPtr<float> parameters, kj::ArrayPtr<const float> gradients,
    kj::Maybe<SharedMemory&> memory) {
  return kj::heap<RemoteStoreImpl>(placement, rounds, rank, parameters, gradients, memory);
}

}  // namespace rpc
