// The input of a network: batches that the readers augment, and raw ones, whatever order a device
// does its work in.
#include <doctest/doctest.h>
#include <string.h>

#include "configs/language/diagnostics.h"
#include "nn/cuda/group.h"
#include "nn/cuda/program.h"
#include "nn/cuda/testing/host_device.h"
#include "nn/reference/reference.h"
#include "runner/roles/batches.h"
#include "tests/input/images.h"

namespace tests {
namespace {

using nn::cuda::Late;

// A dense layer: with as many outputs as inputs, and weights of 1 and 0, its logits are its input.
nn::Graph denseOn(io::ImageShape shape, uint outputs) {
  configs::Diagnostics diagnostics;
  nn::GraphBuilder builder(nn::Shape{shape.channels, shape.height, shape.width}, diagnostics);
  nn::NodeId input = 0;
  auto graph =
      builder.finish(builder.add("", nn::Dense{outputs, false}, kj::arrayPtr(&input, 1), {}), {});
  REQUIRE(diagnostics.count() == 0);
  return graph;
}

struct Window {
  // On a device that is as late as `late` says. If that is null, on two devices that do everything
  // late.
  Window(io::ImageShape shape, uint batchSize, kj::Maybe<Late> late)
      : graph(denseOn(shape, shape.size())) {
    nn::ProgramOptions options{.batchSize = batchSize};
    KJ_IF_MAYBE(own, late) {
      program = nn::cuda::newProgram(graph, kj::heap<nn::cuda::HostDevice>(*own), options);
    } else {
      auto devices = kj::heapArrayBuilder<kj::Own<nn::cuda::Device>>(2);
      for (uint d = 0; d < 2; ++d) {
        devices.add(kj::heap<nn::cuda::HostDevice>(Late{true, true}));
      }
      program = nn::cuda::newGroup(graph, devices.finish(), options);
    }
    for (auto& weight: program->parameters()) weight = 0;
    for (size_t i = 0; i < shape.size(); ++i) program->parameters()[i * shape.size() + i] = 1;
  }

  nn::Graph graph;
  kj::Own<nn::Program> program;
};

// Whether all values are equal. 0 and -0 are.
bool areSame(kj::ArrayPtr<const float> a, kj::ArrayPtr<const float> b) {
  bool same = a.size() == b.size();
  for (size_t i = 0; same && i < a.size(); ++i) same = a[i] == b[i];
  return same;
}

// Runs two passes and two validations through a program that takes raw batches. Checks that its
// input is that of batches of floats.
void checkInput(const Images& images, kj::Maybe<Late> late) {
  auto dataset = images.open();
  auto& config = images.config;
  Window window(dataset->batchShape(), config.batchSize, late);
  runner::Batches batches(*window.program, *dataset, config, 7, 1, 0, 0);
  REQUIRE(batches.mayBeAhead());
  auto expectedTraining = io::Batcher::training(*dataset, config, 7, 1, 0, 0);
  auto expectedValidation = io::Batcher::validation(*dataset, config, 1, 0);
  uint wrong = 0;
  for (uint round = 0; round < 2; ++round) {
    constexpr uint STEPS = 6;
    kj::Array<float> upcoming;  // the expected input of the batch that was set last
    auto take = [&]() {
      auto& found = batches.readTraining();
      auto& expected = KJ_ASSERT_NONNULL(expectedTraining->next());
      CHECK(found.labels == expected.labels);
      CHECK(found.draws == expected.draws);
      upcoming = kj::heapArray(expected.pixels);
      batches.set();
    };
    take();
    for (uint step = 0; step < STEPS; ++step) {
      window.program->forward(nn::Phase::TRAIN, 0);
      auto expected = kj::mv(upcoming);
      // As a worker does, sets the next batch before it reads the results of this step.
      if (step + 1 < STEPS) take();
      wrong += !areSame(window.program->logits(), expected);
    }
    batches.ofValidation().restart(config.views(true));
    expectedValidation->restart(config.views(true));
    for (;;) {
      auto found = batches.readValidation();
      auto expected = expectedValidation->next();
      REQUIRE((found == nullptr) == (expected == nullptr));
      if (found == nullptr) break;
      batches.set();
      window.program->forward(nn::Phase::VALIDATE, 0);
      wrong += !areSame(window.program->logits(), KJ_ASSERT_NONNULL(expected).pixels);
      CHECK(KJ_ASSERT_NONNULL(found).labels == KJ_ASSERT_NONNULL(expected).labels);
    }
  }
  CHECK(wrong == 0);
}

constexpr Late LATES[] = {{false, false}, {true, false}, {false, true}, {true, true}};

TEST_CASE("Input: a raw batch gives the network the same input as the readers, whatever is late") {
  for (auto& c: IMAGES_CASES) {
    INFO(c.name);
    Images images(c);
    images.config.validationViews = io::row(io::VALIDATION_VIEWS, "mirror")->value;
    for (auto late: LATES) {
      INFO("late work " << late.work << ", late copies " << late.copies);
      checkInput(images, late);
    }
  }
}

TEST_CASE("Input: raw batches give the same input where several devices share the rows") {
  for (auto& c: IMAGES_CASES) {
    INFO(c.name);
    Images images(c);
    checkInput(images, nullptr);
    if (c.varies) continue;
    images.config.cache = io::DataCache::DEVICE;
    checkInput(images, nullptr);
  }
}

TEST_CASE("Input: raw batches give the same input where the device keeps images of one size") {
  for (auto& c: IMAGES_CASES) {
    INFO(c.name);
    Images images(c);
    images.config.cache = io::DataCache::DEVICE;
    if (c.varies) {
      auto dataset = images.open();
      Window window(dataset->batchShape(), 4, Late{});
      CHECK_THROWS_WITH(runner::Batches(*window.program, *dataset, images.config, 7, 1, 0, 0),
          doctest::Contains("images that differ in size cannot be kept on a device"));
      continue;
    }
    for (auto late: LATES) {
      INFO("late work " << late.work << ", late copies " << late.copies);
      checkInput(images, late);
    }
  }
}

TEST_CASE("Input: a device keeps images as bytes, including those for validation") {
  Images images(IMAGES_CASES[0]);
  auto& config = images.config;
  io::DatasetFacts facts{{1, 6, 5}, 5, 23, 11};
  CHECK(runner::kept_bytes(config, facts) == 0);
  config.cache = io::DataCache::DEVICE;
  CHECK(runner::kept_bytes(config, facts) == (23 + 11) * 30);
  config.heldOut = 7;
  config.validateOn = io::ValidationSet::HELD_OUT;
  CHECK(runner::kept_bytes(config, facts) == 23 * 30);
  checkInput(images, Late{});
}

TEST_CASE(
    "Input: a program on a GPU gets augmented images if colours change or squares are hidden") {
  for (bool hides: {false, true}) {
    Images images(IMAGES_CASES[1]);
    auto& augment = images.config.augment;
    if (hides) {
      augment.cutout = 2;
    } else {
      augment.colours = {.brightness = 0.4, .contrast = 0.4, .saturation = 0.4, .lighting = 0.1};
    }
    auto dataset = images.open();
    Window window(dataset->batchShape(), 4, Late{true, true});
    runner::Batches batches(*window.program, *dataset, images.config, 7, 1, 0, 0);
    CHECK(!batches.mayBeAhead());
    auto expected = io::Batcher::training(*dataset, images.config, 7, 1, 0, 0);
    for (uint step = 0; step < 8; ++step) {
      batches.readTraining();
      batches.set();
      window.program->forward(nn::Phase::TRAIN, 0);
      CHECK(areSame(window.program->logits(), KJ_ASSERT_NONNULL(expected->next()).pixels));
    }
  }
}

TEST_CASE("Input: a program that needs pixels gets them, and cannot keep images") {
  Images images(IMAGES_CASES[0]);
  auto dataset = images.open();
  auto graph = denseOn({1, 6, 5}, 5);
  auto program = nn::REFERENCE.lower(graph, {.batchSize = 4});
  {
    runner::Batches batches(*program, *dataset, images.config, 7, 1, 0, 0);
    CHECK(!batches.mayBeAhead());
    CHECK(batches.readTraining().pixels.size() == 4 * 30);
    batches.set();
  }
  images.config.cache = io::DataCache::DEVICE;
  CHECK_THROWS_WITH(runner::Batches(*program, *dataset, images.config, 7, 1, 0, 0),
      doctest::Contains("data.cache = \"device\" is for GPUs"));
}

}  // namespace
}  // namespace tests
