#include "runner/experiment/devices.h"

#include <doctest/doctest.h>
#include <kj/debug.h>

#include "nn/cuda/presence.h"
#include "runner/commands/explain.h"
#include "runner/experiment/experiment.h"
#include "runner/experiment/model_facts.h"
#include "tests/text.h"

namespace runner {
namespace {

kj::String errorsWith(kj::StringPtr setting) {
  return loadExperiment("configs/mnist_mlp_local.toml", kj::arrayPtr(&setting, 1)).errors;
}

TEST_CASE(
    "devices: a run refuses a GPU that this machine or program lacks, with place and reason") {
  kj::StringPtr setting = "cluster.devices=[\"cuda:9999\"]";
  auto loaded = loadExperiment("configs/mnist_mlp_local.toml", kj::arrayPtr(&setting, 1));
  REQUIRE(loaded.errors == "");
  auto why = KJ_ASSERT_NONNULL(nn::cuda::whyNot(nn::cuda::presence(), 9999));
  configs::Diagnostics diagnostics;
  requireMachineFor(KJ_ASSERT_NONNULL(loaded.experiment), diagnostics);
  auto errors = diagnostics.format("configs/mnist_mlp_local.toml");
  CHECK(tests::contains(errors, "--set cluster.devices:1:"));
  CHECK(tests::contains(errors, kj::str("error: device `cuda:9999`: ", why, "\n")));
  CHECK(tests::contains(errors, "  help: choose \"cpu\"\n"));
  CHECK(whyNotHere("cpu:7") == nullptr);
}

TEST_CASE("devices: a run leaves the GPUs of other machines to the workers there") {
  kj::StringPtr settings[] = {
      "cluster.devices=[\"cuda:9999\"]", "cluster.launcher=ssh", "cluster.hosts=[\"node1\"]"};
  auto loaded = loadExperiment("configs/mnist_mlp_local.toml", settings);
  REQUIRE(loaded.errors == "");
  configs::Diagnostics diagnostics;
  requireMachineFor(KJ_ASSERT_NONNULL(loaded.experiment), diagnostics);
  CHECK(diagnostics.count() == 0);
}

TEST_CASE("devices: a run refuses a precision that only GPUs have if a worker uses a CPU") {
  for (kj::StringPtr word: {"fp16"_kj, "tf32"_kj}) {
    auto errors = errorsWith(kj::str("train.precision=", word));
    CHECK(tests::contains(errors, kj::str("--set train.precision:1:17: error: precision `", word,
                                      "` is for GPUs, but device `cpu` is not a GPU\n")));
  }
  auto setting = kj::str("train.precision=fp16");
  kj::StringPtr settings[] = {setting, "cluster.devices=[\"cuda\"]"};
  CHECK(loadExperiment("configs/mnist_mlp_local.toml", settings).errors == "");
}

TEST_CASE("devices: an experiment on a GPU can be explained on a machine without one") {
  kj::StringPtr settings[] = {"cluster.devices=[\"cuda\"]", "train.deterministic=true"};
  for (uint count: {1, 2}) {
    auto loaded = loadExperiment("configs/mnist_mlp_local.toml", kj::arrayPtr(settings, count));
    REQUIRE(loaded.errors == "");
    auto text = explain(loaded, nullptr);
    CHECK(tests::contains(text, "cuda updates the parameters, which stay there"));
    CHECK(tests::contains(text, "bits may differ from run to run") == (count == 1));
    KJ_IF_MAYBE(why, whyNotHere("cuda")) {
      CHECK(tests::contains(text, kj::str("unknown on this machine (device cuda: ", *why, ")")));
    }
  }
}

TEST_CASE("devices: a GPU may be named only once") {
  auto errors = errorsWith("cluster.devices=[\"cuda:0\", \"cuda\"]");
  CHECK(tests::contains(errors, "error: device `cuda` is named twice\n"));
  CHECK(tests::contains(errors, "  help: \"cuda\" means \"cuda:0\"\n"));
}

TEST_CASE("describeDevices: lists the CPU, and every GPU or the reason why there is no GPU") {
  auto& found = nn::cuda::presence();
  auto told = describeDevices();
  CHECK(told.startsWith("cpu: avx"));
  CHECK(tests::contains(told, "\ncuda: ") == (found.gpus.size() == 0));
  CHECK(tests::contains(told, found.whyNone));
  for (auto& gpu: found.gpus) CHECK(tests::contains(told, gpu.name));
}

}  // namespace
}  // namespace runner
