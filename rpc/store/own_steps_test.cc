#include "rpc/store/own_steps.h"

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>

#include "rpc/testing/test_model.h"
#include "rpc/testing/test_threads.h"

namespace rpc {
namespace {

constexpr uint WORKERS = 3;

// Gradient descent with the round's divisor and a rate that depends on the update's number.
class Descent final: public Updater {
public:
  explicit Descent(bool outer): outer(outer) {}

  uint stateArrays(const Slice&) const override { return 0; }

  void update(const Slice& slice, const Round& round, kj::ArrayPtr<const float> current,
      kj::ArrayPtr<float> next, kj::ArrayPtr<float>) override {
    double rate = outer ? 1 : 0.1 / (round.number + 1);
    for (uint64_t i = 0; i < slice.size; i++) {
      next[i] = current[i] - rate * round.gradientSum[i] / round.divisor;
    }
  }

private:
  bool outer;
};

float gradientOf(uint rank, uint64_t step, size_t i, double value) {
  return noise(rank, i, step) + 0.1 * value;
}

// Runs a worker that rests after every `epochSteps` steps. Returns its parameters at the end.
kj::Array<float> train(const Placement& placement, kj::ArrayPtr<const Key> keys, uint rank,
    uint localSteps, uint steps, uint epochSteps,
    kj::ArrayPtr<const kj::Own<ServerThread>> servers) {
  auto parameters = kj::heapArray<float>(placement.parameters());
  auto gradients = kj::heapArray<float>(placement.parameters());
  for (auto i: kj::indices(parameters)) parameters[i] = rank == 0 ? noise(99, i, 0) : -1;
  Descent inner(false);
  auto store = newOwnStepsStore(
      placement, roundsOf("local_sgd", WORKERS), rank, {localSteps}, inner, parameters, gradients);
  StoreThread io(KJ_ASSERT_NONNULL(store->remote()), placement, servers);
  store->initialize();
  for (uint64_t step = 0; step < steps; step++) {
    for (auto& key: keys) store->await(step, key.offset, key.offset + key.size);
    for (auto i: kj::indices(gradients)) gradients[i] = gradientOf(rank, step, i, parameters[i]);
    for (auto i = keys.size(); i-- > 0;) {
      store->push(step, keys[i].offset, keys[i].offset + keys[i].size);
    }
    if ((step + 1) % epochSteps == 0) store->rest();
  }
  store->rest();
  store->refresh();
  CHECK(store->updates() == steps);
  return parameters;
}

// Does the same in double, without a store: means after `localSteps` steps and at an epoch's end.
kj::Array<double> expected(uint64_t size, uint localSteps, uint steps, uint epochSteps) {
  auto mean = kj::heapArray<double>(size);
  for (auto i: kj::indices(mean)) {
    mean[i] = noise(99, i, 0);
    double values[WORKERS];
    for (auto& value: values) value = mean[i];
    uint block = 0;
    for (uint64_t step = 0; step < steps; step++) {
      for (uint rank = 0; rank < WORKERS; rank++) {
        values[rank] -= 0.1 / (step + 1) * gradientOf(rank, step, i, values[rank]);
      }
      bool rests = (step + 1) % epochSteps == 0 || step + 1 == steps;
      if (++block < localSteps && !rests) continue;
      block = 0;
      mean[i] = (values[0] + values[1] + values[2]) / WORKERS;
      for (auto& value: values) value = mean[i];
    }
  }
  return mean;
}

TEST_CASE("local_sgd: workers train by themselves, and continue from their mean after each block") {
  auto keys = makeKeys({1000, 10, 5000, 7});
  auto placement = placeBalanced(keys, 4096, 2);
  struct {
    uint localSteps, steps, epochSteps;
  } rows[] = {{1, 7, 100}, {4, 12, 100}, {4, 14, 7}, {4, 16, 8}, {100, 10, 5}};
  for (auto& row: rows) {
    CAPTURE(row.localSteps);
    CAPTURE(row.epochSteps);
    Descent outer(true);
    auto servers = startServers(placement, roundsOf("local_sgd", WORKERS), outer);
    kj::Array<float> results[WORKERS];
    {
      auto computing = KJ_MAP(rank, kj::zeroTo(WORKERS)) {
        return kj::heap<kj::Thread>([&, rank]() {
          results[rank] =
              train(placement, keys, rank, row.localSteps, row.steps, row.epochSteps, servers);
        });
      };
    }
    auto mean = expected(placement.parameters(), row.localSteps, row.steps, row.epochSteps);
    double apart = 0;
    for (auto i: kj::indices(mean)) apart = kj::max(apart, std::fabs(mean[i] - results[0][i]));
    CHECK(apart < 1e-6);
    for (auto& result: results) {
      CHECK(memcmp(result.begin(), results[0].begin(), result.asBytes().size()) == 0);
    }
  }
}

TEST_CASE("local_sgd: a worker sends one difference per block") {
  auto keys = makeKeys({1000});
  auto placement = placeBalanced(keys, 4096, 1);
  Descent inner(false), outer(true);
  auto rounds = roundsOf("local_sgd", 1);
  auto servers = startServers(placement, rounds, outer);
  auto parameters = kj::heapArray<float>(1000), gradients = kj::heapArray<float>(1000);
  for (auto i: kj::indices(parameters)) parameters[i] = gradients[i] = noise(1, i, 1);
  auto store = newOwnStepsStore(placement, rounds, 0, {5}, inner, parameters, gradients);
  StoreThread io(KJ_ASSERT_NONNULL(store->remote()), placement, servers);
  store->initialize();
  for (uint64_t step = 0; step < 11; step++) {
    store->await(step, 0, 1000);
    store->push(step, 0, 1000);
  }
  store->rest();
  // Steps 0 to 4, steps 5 to 9, and the block that had begun.
  CHECK(KJ_ASSERT_NONNULL(store->remote()).traffic()[0].pushed_bytes == 3 * 1000 * sizeof(float));
  store->rest();
  CHECK(KJ_ASSERT_NONNULL(store->remote()).traffic()[0].pushed_bytes == 3 * 1000 * sizeof(float));
}

}  // namespace
}  // namespace rpc
