// Tests stores of modes whose rounds take a push of every worker, over connections that break.
// Compares each kind of update, on servers or on the workers' own shards, with the formula on its
// page in docs/modes, computed in double.
#include <doctest/doctest.h>
#include <kj/debug.h>

#include <cmath>
#include <cstdlib>
#include <cstring>

#include "rpc/store/own_steps.h"
#include "rpc/store/worker_update.h"
#include "rpc/testing/test_cuts.h"
#include "rpc/testing/test_own_shards.h"
#include "rpc/testing/test_setting.h"
#include "rpc/testing/test_threads.h"

namespace rpc {
namespace {

uint64_t schedulesOfEach() {
  auto all = std::getenv("SCHEDULES");
  return (all == nullptr ? 200 : kj::StringPtr(all).parseAs<uint64_t>()) / 5;
}

enum class Kind { DIST_SYNC, WORKER_UPDATE, LOCAL_SGD, ALLREDUCE, ALLREDUCE_WORKER_UPDATE };

bool hasOwnShards(Kind kind) {
  return kind == Kind::ALLREDUCE || kind == Kind::ALLREDUCE_WORKER_UPDATE;
}

bool updatesInWorkers(Kind kind) {
  return kind == Kind::WORKER_UPDATE || kind == Kind::ALLREDUCE_WORKER_UPDATE;
}

// Gradient descent. For gradients the rate depends on the update's number, and for differences it
// is 1.
class Descent final: public Updater {
public:
  explicit Descent(bool ofDifferences): ofDifferences(ofDifferences) {}

  static double rate(uint64_t number) { return 0.1 / (number + 1); }

  uint stateArrays(const Slice&) const override { return 0; }

  void update(const Slice& slice, const Round& round, kj::ArrayPtr<const float> current,
      kj::ArrayPtr<float> next, kj::ArrayPtr<float>) override {
    double rate = ofDifferences ? 1 : Descent::rate(round.number);
    for (uint64_t i = 0; i < slice.size; i++) {
      next[i] = current[i] - rate * round.gradientSum[i] / round.divisor;
    }
  }

private:
  bool ofDifferences;
};

float firstValue(size_t i) {
  return noise(99, i, 0);
}

float gradientOf(uint rank, uint64_t step, size_t i, double value) {
  return noise(rank, i, step) + 0.1 * value;
}

struct Plan {
  Kind kind;
  uint workers;
  uint localSteps;            // LOCAL_SGD
  kj::Vector<uint64_t> ends;  // of epochs: the steps before each
  kj::Array<Key> keys;
  Placement placement;
  Rounds rounds;
  kj::Maybe<uint> cuts;  // a seed, if connections break

  Plan(Kind kind, Dice& dice): kind(kind), workers(dice.roll(1, 3)), localSteps(dice.roll(1, 4)) {
    for (uint64_t epochs = dice.roll(1, 3), steps = 0; epochs > 0; epochs--) {
      ends.add(steps += dice.roll(0, 5));
    }
    kj::Vector<uint64_t> sizes;
    for (uint64_t count = dice.roll(1, 4); count > 0; count--) sizes.add(dice.roll(1, 50));
    // A key that is cut into slices.
    if (dice.onceIn(4)) sizes.add(dice.roll(1025, 2100));
    keys = makeKeys(sizes);
    placement = placeBalanced(keys, 4096, hasOwnShards(kind) ? workers : dice.roll(1, 3));
    auto mode = kind == Kind::LOCAL_SGD ? "local_sgd"
                : hasOwnShards(kind)    ? "allreduce"
                                        : "dist_sync";
    rounds = roundsOf(mode, workers, updatesInWorkers(kind) ? "update = 'worker'"_kj : nullptr);
    if (dice.onceIn(2)) cuts = uint(dice.roll(0, 1 << 20));
  }

  Through through(uint rank) const {
    KJ_IF_MAYBE(seed, cuts) return cutting(*seed, rank, 20'000);
    return [](auto stream) { return stream; };
  }
};

// The value after the last step according to docs/modes. All workers must have it.
double slowValue(const Plan& plan, size_t i) {
  double value = firstValue(i);
  kj::Vector<double> alone;
  for (uint rank = 0; rank < plan.workers; rank++) alone.add(value);
  uint64_t step = 0;
  for (auto end: plan.ends) {
    for (uint64_t block = 1; step < end; step++, block++) {
      double sum = 0, mean = 0;
      for (uint rank = 0; rank < plan.workers; rank++) {
        sum += gradientOf(rank, step, i, value);
        alone[rank] -= Descent::rate(step) * gradientOf(rank, step, i, alone[rank]);
        mean += alone[rank] / plan.workers;
      }
      if (plan.kind != Kind::LOCAL_SGD) {
        value -= Descent::rate(step) * sum / plan.workers;
      } else if (block % plan.localSteps == 0 || step + 1 == end) {
        value = mean;
        for (auto& each: alone) each = mean;
      }
    }
  }
  return value;
}

// A worker with its own arrays and updaters.
struct Trainer {
  const Plan& plan;
  const uint rank;
  kj::Array<float> parameters, gradients;
  Descent descent{false};
  kj::Own<KvStore> store;
  RemoteStore* remote;

  Trainer(const Plan& plan, uint rank): plan(plan), rank(rank) {
    uint64_t size = plan.placement.parameters();
    parameters = kj::heapArray<float>(size);
    gradients = kj::heapArray<float>(size);
    for (auto i: kj::indices(parameters)) parameters[i] = rank == 0 ? firstValue(i) : -1;
    if (plan.kind == Kind::LOCAL_SGD) {
      store = newOwnStepsStore(
          plan.placement, plan.rounds, rank, {plan.localSteps}, descent, parameters, gradients);
    } else if (updatesInWorkers(plan.kind)) {
      store =
          newWorkerUpdateStore(plan.placement, plan.rounds, rank, descent, parameters, gradients);
    } else {
      store = RemoteStore::create(plan.placement, plan.rounds, rank, parameters, gradients);
    }
    remote = &KJ_ASSERT_NONNULL(store->remote());
  }

  // Keys are awaited and pushed in any order.
  void train(uint64_t seed) {
    Dice dice(seed + rank);
    auto order = KJ_MAP(i, kj::indices(plan.keys)) {
      return i;
    };
    auto eachKey = [&](auto&& use) {
      for (size_t i = order.size(); i > 1; i--) std::swap(order[i - 1], order[dice.roll(0, i - 1)]);
      for (auto i: order) use(plan.keys[i].offset, plan.keys[i].offset + plan.keys[i].size);
    };
    store->initialize();
    uint64_t step = 0;
    for (auto end: plan.ends) {
      for (; step < end; step++) {
        eachKey([&](uint64_t begin, uint64_t end) { store->await(step, begin, end); });
        for (auto i: kj::indices(gradients))
          gradients[i] = gradientOf(rank, step, i, parameters[i]);
        eachKey([&](uint64_t begin, uint64_t end) { store->push(step, begin, end); });
      }
      store->rest();
    }
    store->refresh();
  }
};

// Returns how many connections broke.
uint64_t check(const Plan& plan, uint64_t seed) {
  auto trainers = KJ_MAP(rank, kj::zeroTo(plan.workers)) {
    return kj::heap<Trainer>(plan, rank);
  };
  SumUpdater sums;
  Descent onServers(plan.kind == Kind::LOCAL_SGD);
  Updater& updater = updatesInWorkers(plan.kind) ? static_cast<Updater&>(sums) : onServers;
  ShardAddresses addresses;
  addresses.lockExclusive()->resize(plan.workers);
  kj::Array<kj::Own<ServerThread>> servers;
  kj::Vector<kj::Own<StoreThread>> threads;
  kj::Vector<kj::Own<OwnShardThread>> ownThreads;
  if (!hasOwnShards(plan.kind)) servers = startServers(plan.placement, plan.rounds, updater);
  for (auto& trainer: trainers) {
    auto& remote = *trainer->remote;
    if (hasOwnShards(plan.kind)) {
      ownThreads.add(kj::heap<OwnShardThread>(plan.placement, plan.rounds, trainer->rank, remote,
          updater, plan.through(trainer->rank), addresses));
    } else {
      threads.add(
          kj::heap<StoreThread>(remote, plan.placement, servers, plan.through(trainer->rank)));
    }
  }
  {
    auto computing = KJ_MAP(trainer, trainers) {
      return kj::heap<kj::Thread>([&trainer, seed]() { trainer->train(seed); });
    };
  }
  uint64_t breaks = 0;
  auto& first = trainers[0]->parameters;
  for (auto& trainer: trainers) {
    for (auto& traffic: trainer->remote->traffic()) breaks += traffic.reconnects;
    KJ_REQUIRE(trainer->store->updates() == plan.ends.back(), trainer->rank);
    KJ_REQUIRE(memcmp(trainer->parameters.begin(), first.begin(), first.asBytes().size()) == 0,
        "workers have other bits than each other", trainer->rank);
  }
  for (auto i: kj::indices(first)) {
    double expected = slowValue(plan, i);
    KJ_REQUIRE(std::fabs(first[i] - expected) < 1e-5, i, first[i], expected);
  }
  return breaks;
}

void checkMany(Kind kind) {
  uint64_t breaks = 0;
  for (uint64_t seed = 1, count = schedulesOfEach(); seed <= count; seed++) {
    KJ_CONTEXT("the schedule of kind and seed", uint(kind), seed);
    Dice dice(seed);
    Plan plan(kind, dice);
    breaks += check(plan, seed);
  }
  MESSAGE("breaks: ", breaks);
  CHECK(breaks > 0);
}

TEST_CASE("RemoteStore: random rounds over broken connections give the values of the slow model") {
  checkMany(Kind::DIST_SYNC);
}

TEST_CASE("update = \"worker\": all workers have the values of the slow model, and the same bits") {
  checkMany(Kind::WORKER_UPDATE);
}

TEST_CASE(
    "local_sgd: blocks of any length, also those that a rest ends early, agree with the slow "
    "model") {
  checkMany(Kind::LOCAL_SGD);
}

TEST_CASE("allreduce: shards in the workers give the values of the slow model") {
  checkMany(Kind::ALLREDUCE);
  checkMany(Kind::ALLREDUCE_WORKER_UPDATE);
}

}  // namespace
}  // namespace rpc
