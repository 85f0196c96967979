#include "runner/commands/update_plan.h"

#include <doctest/doctest.h>
#include <kj/debug.h>

namespace runner {
namespace {

struct Loaded {
  LoadedExperiment loaded;

  Loaded(kj::StringPtr file, kj::ArrayPtr<const kj::StringPtr> overrides)
      : loaded(loadExperiment(file, overrides)) {
    CAPTURE(loaded.errors.cStr());
    REQUIRE(loaded.experiment != nullptr);
  }
  kj::String plan() {
    auto& experiment = KJ_ASSERT_NONNULL(loaded.experiment);
    return formatTable(updatePlan(experiment, ModelFacts(experiment)), TableFormat::CSV);
  }
  kj::String warnings() {
    auto& experiment = KJ_ASSERT_NONNULL(loaded.experiment);
    return kj::strArray(endlessWarmUps(experiment, ModelFacts(experiment)), "; ");
  }
};

TEST_CASE("updatePlan: has a row for each group, and for keys with their own factors") {
  CHECK(Loaded("configs/cifar10_airbench94.toml", nullptr).plan() ==
        "group,keys,first,rule,learning rate,decay,until,schedule over,warm-up\n"
        "whiten_weight,1,whiten_weight,sgd,0.00146484 × 0,1.36237,never updated,483,\n"
        "whiten_bias,1,whiten_bias,sgd,0.00146484,1.36237,\"epoch 3, update 146\",483,\n"
        "*_beta,6,group1_bn1_beta,sgd,0.00146484 × 64,1.36237 × 0.015625,the end,483,\n"
        "the rest,7,group1_conv1_weight,sgd,0.00146484,1.36237,the end,483,\n"
        "the rest,6,group1_bn1_gamma,sgd,0.00146484 × 0,1.36237 × 0,never updated,483,"
        "\n");
}

TEST_CASE("endlessWarmUps: reports a warm-up that is longer than the run, and only once") {
  auto file = "configs/mnist_mlp_local.toml"_kj;
  kj::StringPtr longer[] = {
      "train.steps=100", "train.schedule={ kind = \"cosine\", warmup_steps = 101 }"};
  CHECK(
      Loaded(file, longer).warnings() == "the warm-up takes 101 updates, but the run has only 100");
  kj::StringPtr asLong[] = {
      "train.steps=100", "train.schedule={ kind = \"cosine\", warmup_steps = 100 }"};
  CHECK(Loaded(file, asLong).warnings() == "");
  CHECK(Loaded(file, nullptr).warnings() == "");
}

}  // namespace
}  // namespace runner
