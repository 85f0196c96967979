#include <kj/debug.h>

#include "rpc/exchange.h"
#include "rpc/kv_store.h"

namespace rpc {

namespace {

class TwoThreadStore final: public RemoteStore {
public:
  TwoThreadStore(const Placement& placement, const Rounds& rounds, uint rank,
      kj::ArrayPtr<float> parameters, kj::ArrayPtr<const float> gradients);

  void initialize() override { complete(Order::INITIALIZE); }
  void push(uint64_t step, uint64_t begin, uint64_t end) override;
  void await(uint64_t step, uint64_t begin, uint64_t end) override;
  void rest() override;
  void refresh() override { complete(Order::REFRESH); }
  uint64_t updates() const override { return side.meeting.lockShared()->updates; }
  kj::Promise<void> run(Servers servers) override { return exchange(side, kj::mv(servers)); }
  void fail(kj::Exception reason) override { side.meeting.lockExclusive()->fail(kj::mv(reason)); }
  kj::Array<Traffic> traffic() const override {
    return kj::heapArray<Traffic>(side.meeting.lockShared()->traffic);
  }

private:
  void ring(Order order);
  void complete(Order::What what);
  template <typename Condition>
  void wait(Condition&& condition);

  WorkerSide side;
  kj::Array<uint64_t> pushed;  // each slice's pushes; compute thread only
  uint64_t asked = 0;          // orders other than pushes; compute thread only
};

TwoThreadStore::TwoThreadStore(const Placement& placement, const Rounds& rounds, uint rank,
    kj::ArrayPtr<float> parameters, kj::ArrayPtr<const float> gradients)
    : side{placement, rounds, rank, parameters, gradients},
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
}

void TwoThreadStore::ring(Order order) {
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
void TwoThreadStore::wait(Condition&& condition) {
  auto lock = side.meeting.lockExclusive();
  lock.wait([&](const Meeting& now) { return now.failure != nullptr || condition(now); });
  KJ_IF_MAYBE(failure, lock->failure) {
    kj::throwFatalException(kj::cp(*failure));
  }
}

void TwoThreadStore::complete(Order::What what) {
  ring(Order{what, 0, {0, SliceId(side.placement.slices.size())}});
  ++asked;
  wait([&](const Meeting& now) { return now.completed >= asked; });
}

void TwoThreadStore::push(uint64_t step, uint64_t begin, uint64_t end) {
  auto slices = side.placement.slicesOf(begin, end);
  for (SliceId id = slices.begin; id < slices.end; id++) pushed[id] = step + 1;
  ring(Order{Order::PUSH, step, slices});
}

void TwoThreadStore::await(uint64_t step, uint64_t begin, uint64_t end) {
  auto slices = side.placement.slicesOf(begin, end);
  for (SliceId id = slices.begin; id < slices.end; id++) {
    KJ_REQUIRE(pushed[id] >= step, "this wait would never end: the step before was not pushed", id,
        step, pushed[id]);
  }
  wait([&](const Meeting& now) {
    // Those found answered stay answered.
    while (slices.begin < slices.end && now.answered[slices.begin] >= step) slices.begin++;
    return slices.begin == slices.end;
  });
}

void TwoThreadStore::rest() {
  wait([&](const Meeting& now) {
    for (auto id: kj::indices(pushed)) {
      if (now.answered[id] < pushed[id]) return false;
    }
    return true;
  });
  if (side.rounds.mustHearOfRest()) complete(Order::REST);
}

}  // namespace

kj::Own<RemoteStore> RemoteStore::create(const Placement& placement, const Rounds& rounds,
    uint rank, kj::ArrayPtr<float> parameters, kj::ArrayPtr<const float> gradients) {
  return kj::heap<TwoThreadStore>(placement, rounds, rank, parameters, gradients);
}

}  // namespace rpc
