#include "nn/cuda/planner.h"

#include <doctest/doctest.h>
#include <kj/debug.h>

#include "nn/chosen_plans.h"
#include "nn/cuda/libraries.h"
#include "nn/cuda/testing/network_convolutions.h"
#include "tests/skip.h"
#include "tests/text.h"

namespace nn::cuda {
namespace {

constexpr size_t ANY = kj::maxValue;

ConvolutionProblem shapeOf(bool deterministic) {
  return {.element = Element::BFLOAT16,
      .output = Element::BFLOAT16,
      .tensorFloats = false,
      .images = 32,
      .x = {64, 14, 14, 80},
      .y = {96, 14, 14, 96},
      .kernelHeight = 3,
      .kernelWidth = 3,
      .stride = 1,
      .pad = 1,
      .deterministic = deterministic};
}

// Starts planners for a device that this machine need not have. Its measurements are made up.
class Machine {
public:
  Machine(): folder(kj::newInMemoryDirectory(kj::nullClock())) {}

  Planner start(kj::StringPtr device = "a device") {
    return Planner(
        describedDevice(h100()), nullptr, device, folder->clone().downcast<const kj::Directory>());
  }
  // The made-up measurements say that the third plan is the fastest.
  kj::String plan(Planner& planner, const ConvolutionProblem& shape,
      Direction direction = Direction::BACKWARD_FILTERS) {
    measured.clear();
    auto plan = planner.plan(shape, direction, ANY, [this](LibraryPlan& plan) -> kj::Maybe<double> {
      measured.add(kj::str(plan.name()));
      return measured.size() == 3 ? 1.0 : 2.0;
    });
    return kj::str(plan->name());
  }

  kj::Vector<kj::String> measured;  // by the last plan()

private:
  kj::Own<const kj::Directory> folder;
};

TEST_CASE("Planner: the fastest plan is measured once, and found again by later runs") {
  KJ_IF_MAYBE(reason, loadLibraries()) SKIP_CASE(reason->cStr());
  Machine machine;
  auto planner = machine.start();
  auto name = machine.plan(planner, shapeOf(false));
  REQUIRE(machine.measured.size() > 3);
  CHECK(name == machine.measured[2]);
  CHECK(machine.plan(planner, shapeOf(false)) == name);
  CHECK(machine.measured.size() == 0);

  auto next = machine.start();
  CHECK(machine.plan(next, shapeOf(false)) == name);
  CHECK(machine.measured.size() == 0);
  // Other convolutions and other devices are measured again.
  machine.plan(next, shapeOf(false), Direction::FORWARD);
  CHECK(machine.measured.size() > 0);
  auto elsewhere = machine.start("another device");
  machine.plan(elsewhere, shapeOf(false));
  CHECK(machine.measured.size() > 0);
}

TEST_CASE("Planner: two devices that begin together choose the same plan, measured once") {
  KJ_IF_MAYBE(reason, loadLibraries()) SKIP_CASE(reason->cStr());
  Machine machine;
  auto first = machine.start(), second = machine.start();
  auto name = machine.plan(first, shapeOf(false));
  CHECK(machine.plan(second, shapeOf(false)) == name);
  CHECK(machine.measured.size() == 0);
}

TEST_CASE(
    "Planner: a plan that needs too large a workspace is not chosen, measured or remembered") {
  KJ_IF_MAYBE(reason, loadLibraries()) SKIP_CASE(reason->cStr());
  Machine machine;
  auto planner = machine.start();
  uint measured = 0;
  auto planWithin = [&](size_t workspaceMax_bytes) {
    measured = 0;
    auto plan = planner.plan(shapeOf(false), Direction::BACKWARD_FILTERS, workspaceMax_bytes,
        [&](LibraryPlan& plan) -> kj::Maybe<double> {
          CHECK(plan.workspace_bytes() <= workspaceMax_bytes);
          measured++;
          return 1.0 / double(1 + plan.workspace_bytes());  // the largest is fastest
        });
    return plan->workspace_bytes();
  };
  auto large = planWithin(ANY);
  REQUIRE(large > 0);
  CHECK(measured > 0);
  auto less = planWithin(large - 1);
  CHECK(less < large);
  CHECK(measured > 0);
  CHECK(planWithin(large - 1) == less);
  CHECK(measured == 0);
}

TEST_CASE("Planner: a resumed run keeps its plan, whatever was measured since") {
  KJ_IF_MAYBE(reason, loadLibraries()) SKIP_CASE(reason->cStr());
  constexpr kj::StringPtr DEVICE = "the device of a run that continues"_kj;
  Machine machine;
  auto planner = machine.start(DEVICE);
  auto fastest = machine.plan(planner, shapeOf(false));
  auto other = kj::str(machine.measured[0]);
  REQUIRE(other != fastest);
  kj::Vector<ChosenPlan> plans;
  for (auto& plan: chosenPlans()) {
    if (!plan.problem.startsWith(DEVICE)) continue;
    CHECK(plan.name == fastest);
    plans.add(ChosenPlan{kj::str(plan.problem), kj::str(other)});
  }
  REQUIRE(plans.size() == 1);
  wantPlans(plans.releaseAsArray());
  CHECK(missingPlans() == 1);
  auto next = machine.start(DEVICE);
  CHECK(machine.plan(next, shapeOf(false)) == other);
  CHECK(machine.measured.size() == 0);
  CHECK(missingPlans() == 0);
}

TEST_CASE("Planner: with `deterministic`, it measures nothing and always chooses the same plan") {
  KJ_IF_MAYBE(reason, loadLibraries()) SKIP_CASE(reason->cStr());
  Machine machine;
  auto planner = machine.start();
  auto name = machine.plan(planner, shapeOf(true));
  auto other = machine.start();
  CHECK(machine.plan(other, shapeOf(true)) == name);
  CHECK(machine.measured.size() == 0);
}

TEST_CASE("Planner: the error about a convolution that no library can compute names it") {
  KJ_IF_MAYBE(reason, loadLibraries()) SKIP_CASE(reason->cStr());
  Machine machine;
  auto planner = machine.start();
  auto shape = shapeOf(false);
  shape.element = Element::FLOAT32;
  shape.output = Element::FLOAT16;
  auto thrown =
      kj::runCatchingExceptions([&]() { machine.plan(planner, shape, Direction::FORWARD); });
  auto text = kj::str(KJ_ASSERT_NONNULL(thrown).getDescription());
  CHECK(tests::contains(
      text, "neither cuDNN nor cuBLASLt can compute this convolution: forward fp32 to fp16 "));
}

TEST_CASE(
    "operandBytesOf: gaps between pixels count, and the output of forward has its own element") {
  auto shape = shapeOf(false);
  shape.output = Element::FLOAT32;
  auto forward = operandBytesOf(shape, Direction::FORWARD);
  CHECK(forward.a == 32 * 14 * 14 * 80 * 2);
  CHECK(forward.b == 96 * 3 * 3 * 64 * 2);
  CHECK(forward.c == 32 * 14 * 14 * 96 * 4);
  auto data = operandBytesOf(shape, Direction::BACKWARD_DATA);
  CHECK((data.a == 32 * 14 * 14 * 96 * 2 && data.b == forward.b && data.c == forward.a));
  auto filters = operandBytesOf(shape, Direction::BACKWARD_FILTERS);
  CHECK((filters.a == forward.a && filters.b == data.a && filters.c == forward.b));
}

}  // namespace
}  // namespace nn::cuda
