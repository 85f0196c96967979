// `bench train` on a GPU whose work the host does.
#include <doctest/doctest.h>
#include <kj/vector.h>

#include "tests/command.h"
#include "tests/run.h"
#include "tests/text.h"

namespace tests {
namespace {

// Times a few steps of an MLP on Fashion-MNIST.
kj::String figuresOf(std::initializer_list<kj::StringPtr> options) {
  kj::Vector<kj::StringPtr> words;
  for (auto word:
      {"tests/gpu/bench_on_host"_kj, "train"_kj, "tests/experiments/fashion_mnist_mlp.toml"_kj,
          "--steps=3"_kj, "--json"_kj, "--set=cluster.devices=[\"cuda\"]"_kj}) {
    words.add(word);
  }
  for (auto option: options) words.add(option);
  auto cache = cacheSetting();
  kj::StringPtr environment[] = {cache};
  auto ended = Command(words, {.environment = environment}).wait();
  CHECK(ended.errors == "");
  REQUIRE(ended.exitCode == 0);
  return kj::mv(ended.output);
}

TEST_CASE("bench train on a GPU: the device keeps the images and updates the parameters") {
  auto figures = figuresOf({"--data"});
  CHECK(contains(figures,
      "\"checked\":\"logits and gradients of 2 images match the reference implementation\""));
  CHECK(contains(figures, "\"push_s\":0.000000"));
  CHECK(contains(figures, "\"data_images_per_s\":"));
}

TEST_CASE("bench train on a GPU whose gradients go elsewhere: the host updates the parameters") {
  auto figures = figuresOf({"--set=kvstore.mode=\"dist_sync\""});
  CHECK(!contains(figures, "\"push_s\":0.000000"));
}

TEST_CASE("bench train on two GPUs: both keep the images") {
  auto figures = figuresOf({"--set=kvstore.mode=\"device\"",
      "--set=cluster.devices=[\"cuda:0\", \"cuda:1\"]", "--no-check"});
  CHECK(contains(figures, "\"checked\":\"not checked\""));
}

}  // namespace
}  // namespace tests
