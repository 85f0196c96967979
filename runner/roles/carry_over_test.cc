#include "runner/roles/carry_over.h"

#include <doctest/doctest.h>

namespace runner {
namespace {

// Returns the position after `epochs` epochs of a run on MNIST with the given number of workers, of
// batch 100.
Continued after(uint epochs, uint64_t step, kj::ArrayPtr<const kj::StringPtr> overrides) {
  kj::Vector<kj::StringPtr> all;
  all.addAll(kj::ArrayPtr<const kj::StringPtr>(
      {"data.batch_size=100"_kj, "cluster.servers=1"_kj, "train.epochs=10"_kj}));
  all.addAll(overrides);
  auto loaded = loadExperiment("configs/mnist_mlp_local.toml", all);
  CAPTURE(loaded.errors.cStr());
  REQUIRE(loaded.experiment != nullptr);
  auto& experiment = KJ_ASSERT_NONNULL(loaded.experiment);
  return continuedAt(experiment, ModelFacts(experiment),
      {.digest = nullptr, .instructionSet = nullptr, .epoch = epochs + 1, .step = step});
}

TEST_CASE("continuedAt: counts steps, records and updates from the beginning of the first run") {
  auto two = after(2, 600, {"kvstore.mode=dist_sync"_kj, "cluster.workers=2"_kj});
  CHECK(two.setting() == "continued={ epoch = 2, step = 600, records = 120000, updates = 600 }");
  auto setting = two.setting();
  auto three =
      after(4, 1000, {"kvstore.mode=dist_sync"_kj, "cluster.workers=3"_kj, setting.asPtr()});
  CHECK(
      three.setting() == "continued={ epoch = 4, step = 1000, records = 240000, updates = 1000 }");
  auto async = after(2, 600, {"kvstore.mode=dist_async"_kj, "cluster.workers=2"_kj});
  CHECK(async.updates == 1200);
}

}  // namespace
}  // namespace runner
