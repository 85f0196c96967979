#include <capnp/orphan.h>
#include <kj/debug.h>
#include <kj/mutex.h>
#include <kj/vector.h>

#include <chrono>
#include <cstring>

#include "rpc/kv_store.h"

namespace rpc {

namespace {

// What the compute thread asks of the io thread.
struct Order {
  enum What { INITIALIZE, PUSH, REFRESH } what;
  uint64_t step;
  SliceRange slices;
};

// Where the two threads meet.
struct Meeting {
  kj::Vector<Order> orders;
  // There while the io thread has nothing to do: fulfilling it wakes it.
  kj::Maybe<kj::Own<kj::CrossThreadPromiseFulfiller<void>>> bell;
  kj::Array<uint64_t> answered;  // each slice's pushes whose answers are in `parameters`
  uint64_t completed = 0;        // initialize and refresh orders
  kj::Maybe<kj::Exception> failure;
  RemoteStore::Traffic traffic;
};

class TwoThreadStore final: public RemoteStore {
public:
  TwoThreadStore(const Placement& placement, const Mode& mode, uint workers, uint rank,
      kj::ArrayPtr<float> parameters, kj::ArrayPtr<const float> gradients);

  void initialize() override { complete(Order::INITIALIZE); }
  void push(uint64_t step, uint64_t begin, uint64_t end) override;
  void await(uint64_t step, uint64_t begin, uint64_t end) override;
  void refresh() override;
  kj::Promise<void> run(
      kj::Array<ShardService::Client> shards, kj::Array<kj::String> names) override;
  void fail(kj::Exception reason) override;
  Traffic traffic() const override { return meeting.lockShared()->traffic; }

private:
  class Exchange;

  void ring(Order order);
  void complete(Order::What what);
  template <typename Condition>
  void wait(Condition&& condition);

  const Placement& placement;
  const Mode& mode;
  uint workers;
  uint rank;
  kj::ArrayPtr<float> parameters;
  kj::ArrayPtr<const float> gradients;
  kj::Array<uint64_t> pushed;  // each slice's pushes; compute thread only
  uint64_t asked = 0;          // initialize and refresh orders; compute thread only
  kj::MutexGuarded<Meeting> meeting;
};

// The io thread's half: sessions with all servers, and the calls in flight.
class TwoThreadStore::Exchange final: private kj::TaskSet::ErrorHandler {
public:
  Exchange(
      TwoThreadStore& store, kj::Array<ShardService::Client> shards, kj::Array<kj::String> names)
      : store(store), shards(kj::mv(shards)), names(kj::mv(names)), calls(*this) {}

  ~Exchange() noexcept(false) {
    // The compute thread may not wait for what will not come.
    store.fail(KJ_EXCEPTION(DISCONNECTED, "this worker's connections to the servers were closed"));
    store.meeting.lockExclusive()->bell = nullptr;
  }

  kj::Promise<void> run();

private:
  kj::Promise<void> hello(uint shard);
  kj::Promise<void> carryOut();
  kj::Promise<void> initialize();
  kj::Promise<void> pullAll();
  kj::Promise<void> sendInitial(SliceId id);
  kj::Promise<void> pull(SliceId id);
  kj::Promise<void> push(uint64_t step, SliceId id);
  void complete();

  // The session that holds the slice.
  ShardSession::Client& holder(SliceId id) { return sessions[store.placement.slices[id].shard]; }
  template <typename Result>
  uint64_t take(SliceId id, Result&& result);
  kj::Promise<void> naming(uint shard, kj::Promise<void> call);
  void taskFailed(kj::Exception&& exception) override { failed->reject(kj::mv(exception)); }

  TwoThreadStore& store;
  kj::Array<ShardService::Client> shards;
  kj::Array<kj::String> names;
  kj::Vector<ShardSession::Client> sessions;
  kj::Vector<Order> orders;  // taken from the meeting; keeps its memory from turn to turn
  kj::Own<kj::PromiseFulfiller<void>> failed;
  kj::TaskSet calls;
};

TwoThreadStore::TwoThreadStore(const Placement& placement, const Mode& mode, uint workers,
    uint rank, kj::ArrayPtr<float> parameters, kj::ArrayPtr<const float> gradients)
    : placement(placement),
      mode(mode),
      workers(workers),
      rank(rank),
      parameters(parameters),
      gradients(gradients),
      pushed(kj::heapArray<uint64_t>(placement.slices.size())) {
  KJ_REQUIRE(rank < workers, rank, workers);
  KJ_REQUIRE(parameters.size() == placement.parameters());
  KJ_REQUIRE(gradients.size() == placement.parameters());
  for (auto& count: pushed) count = 0;
  auto answered = kj::heapArray<uint64_t>(placement.slices.size());
  for (auto& count: answered) count = 0;
  meeting.lockExclusive()->answered = kj::mv(answered);
}

void TwoThreadStore::ring(Order order) {
  kj::Maybe<kj::Own<kj::CrossThreadPromiseFulfiller<void>>> bell;
  {
    auto lock = meeting.lockExclusive();
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
  auto lock = meeting.lockExclusive();
  lock.wait([&](const Meeting& now) { return now.failure != nullptr || condition(now); });
  KJ_IF_MAYBE(failure, lock->failure) {
    kj::throwFatalException(kj::cp(*failure));
  }
}

void TwoThreadStore::complete(Order::What what) {
  ring(Order{what, 0, {0, SliceId(placement.slices.size())}});
  ++asked;
  wait([&](const Meeting& now) { return now.completed >= asked; });
}

void TwoThreadStore::push(uint64_t step, uint64_t begin, uint64_t end) {
  auto slices = placement.slicesOf(begin, end);
  for (SliceId id = slices.begin; id < slices.end; id++) pushed[id] = step + 1;
  ring(Order{Order::PUSH, step, slices});
}

void TwoThreadStore::await(uint64_t step, uint64_t begin, uint64_t end) {
  auto slices = placement.slicesOf(begin, end);
  for (SliceId id = slices.begin; id < slices.end; id++) {
    KJ_REQUIRE(pushed[id] >= step, "this wait would never end: the step before was not pushed", id,
        step, pushed[id]);
  }
  auto start = std::chrono::steady_clock::now();
  wait([&](const Meeting& now) {
    // Those found answered stay answered.
    while (slices.begin < slices.end && now.answered[slices.begin] >= step) slices.begin++;
    return slices.begin == slices.end;
  });
  auto awaited = std::chrono::steady_clock::now() - start;
  meeting.lockExclusive()->traffic.awaited_ns +=
      std::chrono::duration_cast<std::chrono::nanoseconds>(awaited).count();
}

void TwoThreadStore::refresh() {
  wait([&](const Meeting& now) {
    for (auto id: kj::indices(pushed)) {
      if (now.answered[id] < pushed[id]) return false;
    }
    return true;
  });
  complete(Order::REFRESH);
}

void TwoThreadStore::fail(kj::Exception reason) {
  auto lock = meeting.lockExclusive();
  if (lock->failure == nullptr) lock->failure = kj::mv(reason);
}

kj::Promise<void> TwoThreadStore::run(
    kj::Array<ShardService::Client> shards, kj::Array<kj::String> names) {
  KJ_REQUIRE(shards.size() == placement.shards.size() && names.size() == shards.size());
  auto exchange = kj::heap<Exchange>(*this, kj::mv(shards), kj::mv(names));
  auto running = exchange->run();
  return running.attach(kj::mv(exchange));
}

kj::Promise<void> TwoThreadStore::Exchange::run() {
  auto paf = kj::newPromiseAndFulfiller<void>();
  failed = kj::mv(paf.fulfiller);
  auto hellos = KJ_MAP(shard, kj::indices(shards)) {
    return hello(shard);
  };
  return kj::joinPromises(kj::mv(hellos))
      .then([this]() { return carryOut(); })
      .exclusiveJoin(kj::mv(paf.promise))
      .catch_([this](kj::Exception&& exception) {
        store.fail(kj::cp(exception));
        kj::throwFatalException(kj::mv(exception));
      });
}

kj::Promise<void> TwoThreadStore::Exchange::hello(uint shard) {
  auto request = shards[shard].helloRequest();
  request.setRank(store.rank);
  request.setWorkers(store.workers);
  request.setMode(store.mode.name);
  request.setPlacement(store.placement.digest());
  request.setShard(shard);
  auto response = request.send();
  sessions.add(response.getSession());
  return naming(shard, response.ignoreResult());
}

kj::Promise<void> TwoThreadStore::Exchange::carryOut() {
  kj::Promise<void> rung = kj::READY_NOW;
  {
    auto lock = store.meeting.lockExclusive();
    if (lock->orders.size() == 0) {
      auto paf = kj::newPromiseAndCrossThreadFulfiller<void>();
      lock->bell = kj::mv(paf.fulfiller);
      rung = kj::mv(paf.promise);
    } else {
      auto empty = kj::mv(orders);
      orders = kj::mv(lock->orders);
      lock->orders = kj::mv(empty);
    }
  }
  for (auto& order: orders) {
    switch (order.what) {
      case Order::INITIALIZE:
        calls.add(initialize().then([this]() { complete(); }));
        break;
      case Order::PUSH:
        for (SliceId id = order.slices.begin; id < order.slices.end; id++) {
          calls.add(push(order.step, id));
        }
        break;
      case Order::REFRESH:
        calls.add(pullAll().then([this]() { complete(); }));
        break;
    }
  }
  orders.clear();
  return rung.then([this]() { return carryOut(); });
}

void TwoThreadStore::Exchange::complete() {
  store.meeting.lockExclusive()->completed++;
}

kj::Promise<void> TwoThreadStore::Exchange::initialize() {
  auto values = store.rank > 0 ? pullAll()
                               : kj::joinPromises(KJ_MAP(id, kj::indices(store.placement.slices)) {
                                   return sendInitial(id);
                                 });
  return values.then([this]() {
    return kj::joinPromises(KJ_MAP(shard, kj::indices(sessions)) {
      return naming(
          shard, sessions[shard].startRequest(capnp::MessageSize{4, 0}).send().ignoreResult());
    });
  });
}

kj::Promise<void> TwoThreadStore::Exchange::pullAll() {
  return kj::joinPromises(KJ_MAP(id, kj::indices(store.placement.slices)) { return pull(id); });
}

kj::Promise<void> TwoThreadStore::Exchange::sendInitial(SliceId id) {
  auto& slice = store.placement.slices[id];
  auto request = holder(id).initializeRequest(capnp::MessageSize{8, 0});
  request.setSlice(id);
  // Copied: this happens once.
  request.setValues(store.parameters.slice(slice.offset, slice.offset + slice.size).asBytes());
  return naming(slice.shard, request.send().ignoreResult());
}

kj::Promise<void> TwoThreadStore::Exchange::pull(SliceId id) {
  auto request = holder(id).pullRequest(capnp::MessageSize{8, 0});
  request.setSlice(id);
  request.setAtLeastVersion(0);
  auto done = request.send().then(
      [this, id](capnp::Response<ShardSession::PullResults>&& result) { take(id, result); });
  return naming(store.placement.slices[id].shard, kj::mv(done));
}

kj::Promise<void> TwoThreadStore::Exchange::push(uint64_t step, SliceId id) {
  auto& slice = store.placement.slices[id];
  auto gradient = store.gradients.slice(slice.offset, slice.offset + slice.size).asBytes();
  auto request = holder(id).pushPullRequest(capnp::MessageSize{8, 0});
  request.setSlice(id);
  request.setStep(step);
  // A reference is sent in whole words of 8 bytes: what begins or ends between two words is copied
  // instead.
  if (reinterpret_cast<uintptr_t>(gradient.begin()) % 8 == 0 && gradient.size() % 8 == 0) {
    ShardSession::PushPullParams::Builder params = request;
    auto orphanage = capnp::Orphanage::getForMessageContaining(params);
    request.adoptGradient(orphanage.referenceExternalData(gradient));
  } else {
    request.setGradient(gradient);
  }
  auto done = request.send().then(
      [this, step, id](capnp::Response<ShardSession::PushPullResults>&& result) {
        uint64_t version = take(id, result);
        KJ_REQUIRE(
            version > step, "the answer to a push holds values from before it", id, step, version);
        auto lock = store.meeting.lockExclusive();
        lock->answered[id] = step + 1;
        lock->traffic.pushed_bytes += store.placement.slices[id].size * sizeof(float);
      });
  return naming(slice.shard, kj::mv(done));
}

template <typename Result>
uint64_t TwoThreadStore::Exchange::take(SliceId id, Result&& result) {
  auto& slice = store.placement.slices[id];
  // Asked for once: each access counts against the message's limit.
  capnp::Data::Reader values = result.getValues();
  auto target = store.parameters.slice(slice.offset, slice.offset + slice.size).asBytes();
  KJ_REQUIRE(values.size() == target.size(), "an answer does not have its slice's size", id,
      values.size(), target.size());
  memcpy(target.begin(), values.begin(), values.size());
  store.meeting.lockExclusive()->traffic.pulled_bytes += values.size();
  return result.getVersion();
}

kj::Promise<void> TwoThreadStore::Exchange::naming(uint shard, kj::Promise<void> call) {
  return call.catch_([this, shard](kj::Exception&& exception) {
    bool lost = exception.getType() == kj::Exception::Type::DISCONNECTED;
    auto text = kj::str(lost ? "lost " : "", names[shard], ": ", exception.getDescription());
    kj::throwFatalException(kj::Exception(exception.getType(), kj::heapString(exception.getFile()),
        exception.getLine(), kj::mv(text)));
  });
}

}  // namespace

kj::Own<RemoteStore> RemoteStore::create(const Placement& placement, const Mode& mode, uint workers,
    uint rank, kj::ArrayPtr<float> parameters, kj::ArrayPtr<const float> gradients) {
  return kj::heap<TwoThreadStore>(placement, mode, workers, rank, parameters, gradients);
}

}  // namespace rpc
