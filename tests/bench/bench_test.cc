#include <doctest/doctest.h>
#include <stdlib.h>
#include <string.h>

#include "tests/command.h"
#include "tests/text.h"

namespace tests {
namespace {

Ended bench(std::initializer_list<kj::StringPtr> words) {
  kj::Vector<kj::StringPtr> all;
  all.add("tools/bench");
  for (auto word: words) all.add(word);
  return Command(all).wait();
}

// The number behind `"key":`, or -1.
double numberOf(kj::StringPtr json, kj::StringPtr key) {
  const char* at = strstr(json.cStr(), kj::str('"', key, "\":").cStr());
  return at == nullptr ? -1 : strtod(at + key.size() + 3, nullptr);
}

TEST_CASE("bench train: one line of JSON, whose figures fit each other") {
  auto ended = bench({"train", "configs/mnist_mlp_local.toml", "--steps=5", "--json"});
  CHECK(ended.errors == "");
  REQUIRE(ended.exitCode == 0);
  REQUIRE(ended.output.findFirst('\n').orDefault(0) == ended.output.size() - 1);
  double images = numberOf(ended.output, "images_per_s");
  double median_s = numberOf(ended.output, "step_s_median");
  CHECK(images * median_s == doctest::Approx(100).epsilon(0.01));
  CHECK(numberOf(ended.output, "step_s_best") <= median_s);
  CHECK(numberOf(ended.output, "peak_bytes") > numberOf(ended.output, "program_bytes"));
}

TEST_CASE("bench train: a network with dropout agrees with the oracle, and its steps are timed") {
  auto ended = bench({"train", "tests/experiments/fashion_mnist_elu.toml", "--steps=5"});
  CHECK(ended.errors == "");
  CHECK(ended.exitCode == 0);
  CHECK(strstr(ended.output.cStr(), "5 steps; logits agree with the oracle") != nullptr);
}

TEST_CASE("bench train: a wrong file is reported as `runner check` does") {
  auto ended = bench({"train", "configs/mnist_mlp_local.toml", "--set=data.batch_size=0"});
  CHECK(ended.exitCode == 2);
  CHECK(ended.errors.startsWith("--set data.batch_size:1:17: error: `batch_size` must be"));
}

}  // namespace
}  // namespace tests
