// Answers of bad servers to a worker of the store.
#include <kj/async-io.h>
#include <kj/vector.h>

#include "rpc/store/remote_store.h"
#include "rpc/testing/test_model.h"
#include "tests/fuzz/fuzz.h"

namespace fuzz {
namespace {

constexpr uint WORKERS = 2, SERVERS = 2;

struct Mode {
  kj::StringPtr name;
  kj::StringPtr keys;
};
constexpr Mode MODES[] = {
    {"dist_sync"_kj, ""_kj},
    {"dist_sync"_kj, "wire = 'float16'"_kj},
    {"dist_sync"_kj, "compression = { kind = 'topk', sparsity = 0.5 }\nupdate = 'worker'"_kj},
    {"dist_sync"_kj, "compression = { kind = '1bit' }"_kj},
    {"dist_async"_kj, ""_kj},
    {"dist_ssp"_kj, "staleness = 1"_kj},
    {"easgd"_kj, ""_kj},
};

const rpc::Rounds& roundsOf(uint8_t choice) {
  static const auto ALL = KJ_MAP(row, MODES) {
    return rpc::roundsOf(row.name, WORKERS, row.keys);
  };
  return ALL[choice % ALL.size()];
}

const rpc::Placement& placement() {
  static const auto PLACEMENT = rpc::placeBalanced(rpc::makeKeys({20, 3, 1}), 32, SERVERS);
  return PLACEMENT;
}

// Throws occasionally, so that the worker gets a refusal, or loses its connection.
void refuseSometimes(Dice& dice) {
  uint8_t choice = dice.byte();
  if (choice == 254) kj::throwFatalException(KJ_EXCEPTION(DISCONNECTED, "gone"));
  KJ_REQUIRE(choice != 255, "this server takes no such call");
}

class BadSession final: public rpc::ShardSession::Server {
public:
  explicit BadSession(Dice& dice): dice(dice) {}

  kj::Promise<void> initialize(InitializeContext) override { return ready(); }
  kj::Promise<void> start(StartContext) override { return ready(); }
  kj::Promise<void> rest(RestContext) override { return ready(); }
  kj::Promise<void> pull(PullContext context) override {
    kj::Vector<uint64_t> sizes;
    for (auto id: context.getParams().getSlices()) {
      sizes.add(placement().slices[id].size * sizeof(float));
    }
    fill(context.getResults().initValues(entries(sizes.size())), sizes);
    return ready();
  }
  kj::Promise<void> pushPull(PushPullContext context) override {
    kj::Vector<uint64_t> sizes;
    for (auto entry: context.getParams().getGradients()) sizes.add(entry.getFloats().size());
    fill(context.getResults().initValues(entries(sizes.size())), sizes);
    return ready();
  }

private:
  kj::Promise<void> ready() {
    refuseSometimes(dice);
    return kj::READY_NOW;
  }
  uint entries(uint right) { return dice.byte() == 1 ? dice.byte() % 8 : right; }
  // Entries that have the right size more often than not.
  void fill(capnp::List<rpc::Versioned>::Builder values, kj::ArrayPtr<const uint64_t> sizes) {
    for (auto i: kj::indices(values)) {
      uint8_t choice = dice.byte();
      values[i].setVersion(dice.near(4));
      if (choice % 4 == 0) {
        values[i].setFloats(dice.take(choice));
      } else {
        auto floats = values[i].initFloats(i < sizes.size() ? sizes[i] : choice);
        memset(floats.begin(), choice, floats.size());
      }
    }
  }

  Dice& dice;
};

class BadServer final: public rpc::ShardService::Server {
public:
  explicit BadServer(Dice& dice): dice(dice) {}

  kj::Promise<void> hello(HelloContext context) override {
    refuseSometimes(dice);
    if (dice.byte() != 1) context.getResults().setSession(kj::heap<BadSession>(dice));
    return kj::READY_NOW;
  }

private:
  Dice& dice;
};

kj::AsyncIoContext& context() {
  static auto io = kj::setupAsyncIo();
  return io;
}

}  // namespace

void feed(Bytes input) {
  constexpr uint TURNS_MAX = 100;
  Dice dice(input);
  auto& io = context();
  auto& rounds = roundsOf(dice.byte());
  uint8_t rank = dice.byte() % WORKERS;
  auto parameters = kj::heapArray<float>(placement().parameters());
  auto gradients = kj::heapArray<float>(placement().parameters());
  for (auto& value: parameters) value = 0;
  for (auto& value: gradients) value = 1;
  auto limits = rpc::limitsFor(placement());
  auto store = rpc::RemoteStore::create(placement(), rounds, rank, parameters, gradients);
  uint turns = 0;
  store->shareThread([&]() {
    io.waitScope.poll();
    if (++turns >= TURNS_MAX || dice.isEmpty()) {
      store->fail(KJ_EXCEPTION(FAILED, "the servers say no more"));
    }
  });
  kj::Vector<kj::Promise<void>> serving;
  auto connect = [&](uint) -> kj::Promise<kj::Own<rpc::Peer>> {
    auto pipe = kj::newTwoWayPipe();
    serving.add(rpc::serve(kj::mv(pipe.ends[0]), limits, kj::heap<BadServer>(dice))
                    .eagerlyEvaluate([](kj::Exception&& e) { judge(e); }));
    return kj::heap<rpc::Peer>(kj::mv(pipe.ends[1]), limits);
  };
  auto names = KJ_MAP(i, kj::range(0u, SERVERS)) {
    return kj::str("server ", i);
  };
  auto running =
      store->run({kj::mv(names), kj::mv(connect), io.provider->getTimer(), 5 * kj::SECONDS})
          .eagerlyEvaluate([](kj::Exception&& e) { judge(e); });
  KJ_DEFER({
    running = nullptr;
    serving.clear();
    io.waitScope.poll();
  });
  uint64_t all = placement().parameters();
  store->initialize();
  for (uint64_t step = 0; step < 3; step++) {
    store->push(step, 0, all);
    store->await(step + 1, 0, all);
  }
  store->rest();
  store->refresh();
  store->updates();
}

}  // namespace fuzz
