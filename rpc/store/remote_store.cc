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
  void await(uint64_t step, uint64_t begin, uint64_t end) override;
  void rest() override;
  void refresh() override { complete(Order::REFRESH); }
  uint64_t updates() const override { return handover.state.lockShared()->updates; }
  kj::Promise<void> run(Servers servers) override { return exchange(handover, kj::mv(servers)); }
  void fail(kj::Exception reason) override { handover.state.lockExclusive()->fail(kj::mv(reason)); }
  void traceTo(Trace& trace) override;
  kj::Array<Traffic> traffic() const override {
    return kj::heapArray<Traffic>(handover.state.lockShared()->traffic);
  }

private:
  void complete(Order::What what);
  void awaitShared(uint64_t step, SliceRange slices);
  void throwIfFailed() const { handover.state.lockShared()->throwIfFailed(); }
  // Whether pushes of this slice, and their answers, go through shared memory.
  bool isShared(SliceId id) const {
    return handover.sharesWith(handover.placement.slices[id].shard);
  }

  Handover handover;
  // For the compute thread only.
  kj::Array<uint64_t> pushed;  // per slice: pushes
  uint64_t ordered = 0;        // orders other than pushes
};

RemoteStoreImpl::RemoteStoreImpl(const Placement& placement, const Rounds& rounds, uint rank,
    kj::ArrayPtr<float> parameters, kj::ArrayPtr<const float> gradients,
    kj::Maybe<SharedMemory&> memory)
    : handover{placement, rounds, rank, parameters, gradients, nullptr},
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

void RemoteStoreImpl::complete(Order::What what) {
  handover.give(Order{what, 0, {0, SliceId(handover.placement.slices.size())}});
  ++ordered;
  handover.wait([&](const Handover::State& now) { return now.completed >= ordered; });
}

void RemoteStoreImpl::push(uint64_t step, uint64_t begin, uint64_t end) {
  auto slices = handover.placement.slicesOf(begin, end);
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
  // Waiting for one after the other takes no longer than for both at once.
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
  if (handover.rounds.needsRest()) complete(Order::REST);
}

}  // namespace

kj::Own<RemoteStore> RemoteStore::create(const Placement& placement, const Rounds& rounds,
    uint rank, kj::ArrayPtr<float> parameters, kj::ArrayPtr<const float> gradients,
    kj::Maybe<SharedMemory&> memory) {
  return kj::heap<RemoteStoreImpl>(placement, rounds, rank, parameters, gradients, memory);
}

}  // namespace rpc
