#include "rpc/modes/easgd_mode.h"

#include <doctest/doctest.h>
#include <kj/debug.h>
#include <kj/thread.h>

#include <cmath>

#include "rpc/store/remote_store.h"
#include "rpc/testing/test_model.h"
#include "rpc/testing/test_threads.h"

namespace rpc {
namespace {

// A worker's own optimizer: x ← x - 0.1 · gradient.
class Descent final: public Updater {
public:
  uint stateArrays(const Slice&) const override { return 0; }
  void update(const Slice& slice, const Round& round, kj::ArrayPtr<const float> current,
      kj::ArrayPtr<float> next, kj::ArrayPtr<float>) override {
    for (uint64_t i = 0; i < slice.size; i++) next[i] = current[i] - 0.1f * round.gradientSum[i];
  }
};

float firstValue(size_t i) {
  return noise(99, i, 0);
}

float gradientOf(uint rank, uint64_t step, size_t i, double value) {
  return noise(rank, i, step) + 0.1 * value;
}

// A worker and its store. The test makes its steps one by one.
struct Trainer {
  const Placement& placement;
  const uint rank;
  kj::Array<float> parameters, gradients;
  Descent descent;
  kj::Own<KvStore> store;
  StoreThread io;
  uint64_t step = 0;

  Trainer(const KvStoreConfig& config, const Placement& placement, uint workers, uint rank,
      kj::ArrayPtr<const kj::Own<ServerThread>> servers)
      : placement(placement),
        rank(rank),
        parameters(kj::heapArray<float>(placement.parameters())),
        gradients(kj::heapArray<float>(placement.parameters())),
        store(config.mode->newStore(
            {placement, config.rounds(workers), rank, descent, parameters, gradients, nullptr})),
        io(KJ_ASSERT_NONNULL(store->remote()), placement, servers) {
    for (auto i: kj::indices(parameters)) parameters[i] = rank == 0 ? firstValue(i) : -1;
  }

  void makeStep() {
    // Uses the answer to the last exchange, if there was one.
    store->await(step, 0, parameters.size());
    for (auto i: kj::indices(gradients)) gradients[i] = gradientOf(rank, step, i, parameters[i]);
    store->push(step, 0, parameters.size());
    step++;
  }
};

// The rule of docs/modes/easgd.md for one value, in double.
struct Model {
  double centre;
  kj::Vector<double> own;
  double rate;

  void makeStep(uint rank, uint64_t step, size_t i) {
    own[rank] -= 0.1 * gradientOf(rank, step, i, own[rank]);
  }
  void exchange(uint rank) {
    double force = rate * (own[rank] - centre);
    own[rank] -= force;
    centre += force;
  }
};

void checkAgainstModel(uint workers, kj::StringPtr keys, double rate) {
  constexpr uint PERIOD = 3, EPOCHS = 2, STEPS = 7;
  auto config = kvStoreOf(kj::str("mode = 'easgd'\nperiod_steps = ", PERIOD, "\n", keys));
  auto placement = placeBalanced(makeKeys({1000, 10, 3000}), 4096, 2);
  auto updater = config.mode->newShardUpdater(kj::heap<Descent>(), 1, workers);
  auto servers = startServers(placement, config.rounds(workers), *updater);
  auto trainers = KJ_MAP(rank, kj::zeroTo(workers)) {
    return kj::heap<Trainer>(config, placement, workers, rank, servers);
  };
  auto models = KJ_MAP(i, kj::zeroTo(placement.parameters())) {
    Model model{firstValue(i), {}, rate};
    for (uint rank = 0; rank < workers; rank++) model.own.add(firstValue(i));
    return model;
  };
  {
    // This call waits for all workers.
    auto initializing = KJ_MAP(trainer, trainers) {
      return kj::heap<kj::Thread>([&trainer]() { trainer->store->initialize(); });
    };
  }
  auto compare = [&](uint rank, auto&& expected) {
    auto& values = trainers[rank]->parameters;
    for (auto i: kj::indices(values)) {
      CAPTURE(i);
      REQUIRE(std::fabs(values[i] - expected(models[i])) < 1e-5);
    }
  };
  // Each worker makes a whole block of steps in turn, so that exchanges have one order.
  for (uint epoch = 0; epoch < EPOCHS; epoch++) {
    for (uint done = 0; done < STEPS;) {
      uint block = kj::min(PERIOD, STEPS - done);
      for (uint rank = 0; rank < workers; rank++) {
        auto& trainer = *trainers[rank];
        for (uint k = 0; k < block; k++) {
          trainer.makeStep();
          for (auto i: kj::indices(models)) models[i].makeStep(rank, trainer.step - 1, i);
        }
        for (auto& model: models) model.exchange(rank);
        if (block == PERIOD) trainer.store->await(trainer.step, 0, placement.parameters());
        // A block that the end of an epoch cuts short is exchanged, too.
        if (block < PERIOD) trainer.store->rest();
        compare(rank, [&](Model& model) { return model.own[rank]; });
      }
      done += block;
    }
    // All workers validate the centre, and continue with their own values.
    for (auto& trainer: trainers) trainer->store->refresh();
    for (uint rank = 0; rank < workers; rank++) {
      compare(rank, [](Model& model) { return model.centre; });
    }
  }
}

TEST_CASE("easgd: workers and servers have the values of the slow model") {
  checkAgainstModel(3, "moving_rate = 0.2", 0.2);
  // The paper's 0.9 / workers.
  checkAgainstModel(3, "", 0.3);
  // With the largest rate, both meet in the middle.
  checkAgainstModel(1, "", 0.5);
}

TEST_CASE(
    "easgd: one step of every worker counts as one update, and workers push after ten by default") {
  auto config = kvStoreOf("mode = 'easgd'");
  CHECK(config.mode->stepsPerUpdate(4) == 4);
  CHECK(KJ_ASSERT_NONNULL(config.mode->stepsAlone()) == 10);
}

}  // namespace
}  // namespace rpc
