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
  uint64_t updates() const override { return side.meeting.lockShared()->updates; }
  kj::Promise<void> run(Servers servers) override { return exchange(side, kj::mv(servers)); }
  void fail(kj::Exception reason) override { side.meeting.lockExclusive()->fail(kj::mv(reason)); }
  void traceTo(Trace& trace) override;
  kj::Array<Traffic> traffic() const override {
    return kj::heapArray<Traffic>(side.meeting.lockShared()->traffic);
  }

private:
  void ring(Order order);
  void complete(Order::What what);
  void awaitShared(uint64_t step, SliceRange slices);
  void check() const;
  // Whether pushes of this slice, and their answers, go through shared memory.
  bool isShared(SliceId id) const { return side.sharesWith(side.placement.slices[id].shard); }
  template <typename Condition>
  void wait(Condition&& condition);

  WorkerSide side;
  kj::Array<uint64_t> pushed;  // each slice's pushes; compute thread only
  uint64_t asked = 0;          // orders other than pushes; compute thread only
};

RemoteStoreImpl::RemoteStoreImpl(const Placement& placement, const Rounds& rounds, uint rank,
    kj::ArrayPtr<float> parameters, kj::ArrayPtr<const float> gradients,
    kj::Maybe<SharedMemory&> memory)
    : side{placement, rounds, rank, parameters, gradients, nullptr},
      pushed(kj::heapArray<uint64_t>(placement.slices.size())) {
  KJ_REQUIRE(rank < rounds.workers, rank, rounds.workers);
  KJ_REQUIRE(parameters.size() == placement.parameters());
  KJ_REQUIRE(gradients.size() == placement.parameters());
  for (auto& count: pushed) count = 0;
  auto answered = kj::heapArray<uint64_t>(placement.slices.size());
  for (auto& count: answered) count = 0;
  auto lock = side.meeting.lockExclusive();
  lock->answered = kj::mv(answered);
  lock->traffic = kj::heapArray<Traffic>(placement.shards.size());
  KJ_IF_MAYBE(own, memory) {
    auto shared = kj::heap<SharedServers>(placement, rounds, *own);
    lock->sleeper = shared->sleeper();
    side.shared = kj::mv(shared);
  }
}

void RemoteStoreImpl::traceTo(Trace& trace) {
  side.trace = trace;
  KJ_IF_MAYBE(shared, side.shared) (*shared)->traceTo(trace.compute, side.rank);
}

void RemoteStoreImpl::ring(Order order) {
  kj::Maybe<kj::Own<kj::CrossThreadPromiseFulfiller<void>>> bell;
  {
    auto lock = side.meeting.lockExclusive();
    KJ_IF_MAYBE(failure, lock->failure) {
      kj::throwFatalException(kj::cp(*failure));
    }
    lock->orders.add(order);
    bell = kj::mv(lock->bell);
    lock->bell = nullptr;
  }
  KJ_IF_MAYBE(fulfiller, bell) {
    (*fulfiller)->fulfill();
  }
}

template <typename Condition>
void RemoteStoreImpl::wait(Condition&& condition) {
  auto lock = side.meeting.lockExclusive();
  lock.wait([&](const Meeting& now) { return now.failure != nullptr || condition(now); });
  KJ_IF_MAYBE(failure, lock->failure) {
    kj::throwFatalException(kj::cp(*failure));
  }
}

void RemoteStoreImpl::complete(Order::What what) {
  ring(Order{what, 0, {0, SliceId(side.placement.slices.size())}});
  ++asked;
  wait([&](const Meeting& now) { return now.completed >= asked; });
}

void RemoteStoreImpl::push(uint64_t step, uint64_t begin, uint64_t end) {
  auto slices = side.placement.slicesOf(begin, end);
  check();
  for (SliceId id = slices.begin; id < slices.end;) {
    auto begin = id;
    bool shared = isShared(id);
    for (; id < slices.end && isShared(id) == shared; id++) {
      pushed[id] = step + 1;
      KJ_IF_MAYBE(trace, side.trace) trace->compute.add(Mark::QUEUED, side.rank, step, id);
      if (shared) KJ_ASSERT_NONNULL(side.shared)->push(id, step);
    }
    if (!shared) ring(Order{Order::PUSH, step, {begin, id}});
  }
  KJ_IF_MAYBE(shared, side.shared) (*shared)->tell();
}

// Throws what the store failed of, if it did.
void RemoteStoreImpl::check() const {
  auto lock = side.meeting.lockShared();
  KJ_IF_MAYBE(failure, lock->failure) {
    kj::throwFatalException(kj::cp(*failure));
  }
}

// Waits for the answers that come through shared memory.
void RemoteStoreImpl::awaitShared(uint64_t step, SliceRange slices) {
  KJ_IF_MAYBE(shared, side.shared) {
    if (!(*shared)->await(slices, step, side.parameters, [this]() { check(); })) return;
    auto lock = side.meeting.lockExclusive();
    lock->updates = kj::max(lock->updates, (*shared)->updates());
    (*shared)->account(lock->traffic);
  }
}

void RemoteStoreImpl::await(uint64_t step, uint64_t begin, uint64_t end) {
  auto slices = side.placement.slicesOf(begin, end);
  for (SliceId id = slices.begin; id < slices.end; id++) {
    KJ_REQUIRE(pushed[id] >= step, "this wait would never end: the step before was not pushed", id,
        step, pushed[id]);
  }
  // One after the other: the later of the two ends the wait.
  awaitShared(step, slices);
  wait([&](const Meeting& now) {
    // Those found answered stay answered.
    while (slices.begin < slices.end &&
           (isShared(slices.begin) || now.answered[slices.begin] >= step)) {
      slices.begin++;
    }
    return slices.begin == slices.end;
  });
}

void RemoteStoreImpl::rest() {
  for (SliceId id: kj::indices(pushed)) awaitShared(pushed[id], {id, id + 1});
  wait([&](const Meeting& now) {
    for (SliceId id: kj::indices(pushed)) {
      if (!isShared(id) && now.answered[id] < pushed[id]) return false;
    }
    return true;
  });
  if (side.rounds.mustHearOfRest()) complete(Order::REST);
}

}  // namespace

kj::Own<RemoteStore> RemoteStore::create(const Placement& placement, const Rounds& rounds,
    uint rank, kj::ArrayPtr<float> parameters, kj::ArrayPtr<const float> gradients,
    kj::Maybe<SharedMemory&> memory) {
  return kj::heap<RemoteStoreImpl>(placement, rounds, rank, parameters, gradients, memory);
}

}  // namespace rpc
