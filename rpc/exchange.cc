#include "rpc/exchange.h"

#include <kj/debug.h>

#include <cstring>

#include "rpc/grouping.h"
#include "rpc/payload.h"

namespace rpc {

namespace {

// Sessions with all servers, and the calls in flight.
class Exchange final: private kj::TaskSet::ErrorHandler {
public:
  Exchange(WorkerSide& worker, kj::Array<ShardService::Client> shards, kj::Array<kj::String> names)
      : worker(worker), shards(kj::mv(shards)), names(kj::mv(names)), calls(*this) {}

  ~Exchange() noexcept(false) {
    // The compute thread may not wait for what will not come.
    auto lock = worker.meeting.lockExclusive();
    lock->fail(KJ_EXCEPTION(DISCONNECTED, "this worker's connections to the servers were closed"));
    lock->bell = nullptr;
  }

  kj::Promise<void> run();

private:
  kj::Promise<void> hello(uint shard);
  kj::Promise<void> carryOut();
  kj::Promise<void> initialize();
  kj::Promise<void> sendAllInitial();
  kj::Promise<void> rest();
  kj::Promise<void> pullAll();
  kj::Promise<void> sendInitial(const Group& group);
  kj::Promise<void> pull(const Group& group);
  kj::Promise<void> push(uint64_t step, const Group& group);
  void complete();

  SliceRange everything() const { return {0, SliceId(worker.placement.slices.size())}; }
  template <typename T>
  kj::ArrayPtr<T> part(kj::ArrayPtr<T> array, SliceId id) const {
    return worker.placement.slices[id].of(array);
  }
  template <typename Result>
  uint64_t take(const Group& group, uint64_t atLeastVersion, Result&& result);
  kj::Promise<void> naming(uint shard, kj::Promise<void> call);
  void taskFailed(kj::Exception&& exception) override { failed->reject(kj::mv(exception)); }

  WorkerSide& worker;
  kj::Array<ShardService::Client> shards;
  kj::Array<kj::String> names;
  kj::Vector<ShardSession::Client> sessions;
  kj::Vector<Order> orders;  // taken from the meeting; keeps its memory from turn to turn
  kj::Own<kj::PromiseFulfiller<void>> failed;
  kj::TaskSet calls;
};

kj::Promise<void> Exchange::run() {
  auto paf = kj::newPromiseAndFulfiller<void>();
  failed = kj::mv(paf.fulfiller);
  auto hellos = KJ_MAP(shard, kj::indices(shards)) {
    return hello(shard);
  };
  return kj::joinPromises(kj::mv(hellos))
      .then([this]() { return carryOut(); })
      .exclusiveJoin(kj::mv(paf.promise))
      .catch_([this](kj::Exception&& exception) {
        worker.meeting.lockExclusive()->fail(kj::cp(exception));
        kj::throwFatalException(kj::mv(exception));
      });
}

kj::Promise<void> Exchange::hello(uint shard) {
  auto request = shards[shard].helloRequest();
  request.setRank(worker.rank);
  request.setWorkers(worker.rounds.workers);
  request.setMode(kj::str(worker.rounds));
  request.setPlacement(worker.placement.digest());
  request.setShard(shard);
  auto response = request.send();
  sessions.add(response.getSession());
  return naming(shard, response.ignoreResult());
}

kj::Promise<void> Exchange::carryOut() {
  kj::Promise<void> rung = kj::READY_NOW;
  {
    auto lock = worker.meeting.lockExclusive();
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
        forEachGroup(worker.placement, order.slices,
            [&](const Group& group) { calls.add(push(order.step, group)); });
        break;
      case Order::REST:
        calls.add(rest().then([this]() { complete(); }));
        break;
      case Order::REFRESH:
        calls.add(pullAll().then([this]() { complete(); }));
        break;
    }
  }
  orders.clear();
  return rung.then([this]() { return carryOut(); });
}

void Exchange::complete() {
  worker.meeting.lockExclusive()->completed++;
}

kj::Promise<void> Exchange::initialize() {
  auto values = worker.rank > 0 ? pullAll() : sendAllInitial();
  return values.then([this]() {
    return kj::joinPromises(KJ_MAP(shard, kj::indices(sessions)) {
      return naming(
          shard, sessions[shard].startRequest(capnp::MessageSize{4, 0}).send().ignoreResult());
    });
  });
}

kj::Promise<void> Exchange::rest() {
  return kj::joinPromises(KJ_MAP(shard, kj::indices(sessions)) {
    return naming(
        shard, sessions[shard].restRequest(capnp::MessageSize{4, 0}).send().ignoreResult());
  });
}

kj::Promise<void> Exchange::sendAllInitial() {
  kj::Vector<kj::Promise<void>> all;
  forEachGroup(
      worker.placement, everything(), [&](const Group& group) { all.add(sendInitial(group)); });
  return kj::joinPromises(all.releaseAsArray());
}

kj::Promise<void> Exchange::pullAll() {
  kj::Vector<kj::Promise<void>> all;
  forEachGroup(worker.placement, everything(), [&](const Group& group) { all.add(pull(group)); });
  return kj::joinPromises(all.releaseAsArray());
}

kj::Promise<void> Exchange::sendInitial(const Group& group) {
  auto request = sessions[group.shard].initializeRequest();
  auto values = request.initValues(group.slices.size());
  for (auto i: kj::indices(group.slices)) {
    values[i].setSlice(group.slices[i]);
    // Copied: this happens once.
    values[i].setFloats(part(worker.parameters, group.slices[i]).asBytes());
  }
  return naming(group.shard, request.send().ignoreResult());
}

kj::Promise<void> Exchange::pull(const Group& group) {
  auto request = sessions[group.shard].pullRequest();
  auto slices = request.initSlices(group.slices.size());
  for (auto i: kj::indices(group.slices)) slices.set(i, group.slices[i]);
  auto done =
      request.send().then([this, group](capnp::Response<ShardSession::PullResults>&& result) {
        uint64_t bytes = take(group, 0, result);
        worker.meeting.lockExclusive()->traffic.pulled_bytes += bytes;
      });
  return naming(group.shard, kj::mv(done));
}

kj::Promise<void> Exchange::push(uint64_t step, const Group& group) {
  SizeOfList size;
  for (auto id: group.slices) size.add(part(worker.gradients, id));
  auto request = sessions[group.shard].pushPullRequest(size.size());
  request.setStep(step);
  auto gradients = request.initGradients(group.slices.size());
  for (auto i: kj::indices(group.slices)) {
    gradients[i].setSlice(group.slices[i]);
    setFloats(gradients[i], part(worker.gradients, group.slices[i]));
  }
  auto done = request.send().then(
      [this, step, group](capnp::Response<ShardSession::PushPullResults>&& result) {
        // A push that counts is in the values that answer it.
        bool counts = worker.rounds.counted == Rounds::ALL || worker.rounds.counted == Rounds::EACH;
        uint64_t bytes = take(group, counts ? step + 1 : 0, result);
        auto lock = worker.meeting.lockExclusive();
        for (auto id: group.slices) lock->answered[id] = step + 1;
        lock->traffic.pushed_bytes += bytes;
        lock->traffic.pulled_bytes += bytes;
      });
  return naming(group.shard, kj::mv(done));
}

// Copies an answer to `parameters`. Returns its bytes. A wrong answer ends the store, and then
// nobody asks what `parameters` hold.
template <typename Result>
uint64_t Exchange::take(const Group& group, uint64_t atLeastVersion, Result&& result) {
  auto values = result.getValues();
  KJ_REQUIRE(values.size() == group.slices.size(), "an answer does not have its call's slices",
      values.size(), group.slices.size());
  uint64_t bytes = 0;
  for (auto i: kj::indices(group.slices)) {
    auto id = group.slices[i];
    // Asked for once: each access counts against the message's limit.
    capnp::Data::Reader floats = values[i].getFloats();
    auto target = part(worker.parameters, id).asBytes();
    KJ_REQUIRE(floats.size() == target.size(), "an answer does not have its slice's size", id,
        floats.size(), target.size());
    KJ_REQUIRE(values[i].getVersion() >= atLeastVersion,
        "the answer to a push holds values from before it", id, values[i].getVersion(),
        atLeastVersion);
    memcpy(target.begin(), floats.begin(), floats.size());
    bytes += floats.size();
    if (id == 0) {
      auto lock = worker.meeting.lockExclusive();
      lock->updates = kj::max(lock->updates, values[i].getVersion());
    }
  }
  return bytes;
}

kj::Promise<void> Exchange::naming(uint shard, kj::Promise<void> call) {
  return call.catch_([this, shard](kj::Exception&& exception) {
    bool lost = exception.getType() == kj::Exception::Type::DISCONNECTED;
    auto text = kj::str(lost ? "lost " : "", names[shard], ": ", exception.getDescription());
    kj::throwFatalException(kj::Exception(exception.getType(), kj::heapString(exception.getFile()),
        exception.getLine(), kj::mv(text)));
  });
}

}  // namespace

kj::Promise<void> exchange(
    WorkerSide& worker, kj::Array<ShardService::Client> shards, kj::Array<kj::String> names) {
  KJ_REQUIRE(shards.size() == worker.placement.shards.size() && names.size() == shards.size());
  auto exchange = kj::heap<Exchange>(worker, kj::mv(shards), kj::mv(names));
  auto running = exchange->run();
  return running.attach(kj::mv(exchange));
}

}  // namespace rpc
