#include "nn/schedule.h"

#include <kj/array.h>

#include "nn/power.h"

namespace nn {
namespace {

// Reports it unless exactly one of two keys is there.
void requireOne(configs::Reader& reader, kj::StringPtr first, bool hasFirst, kj::StringPtr second,
    bool hasSecond) {
  if (hasFirst && hasSecond) {
    reader.error(first, kj::str("`", first, "` and `", second, "` cannot both be given"),
        "leave one of them out");
  } else if (!hasFirst && !hasSecond && !reader.isManual()) {
    reader.error(first, kj::str("this schedule needs `", first, "` or `", second, "`"));
  }
}

uint64_t updatesOf(double epochs, double updatesPerEpoch) {
  double updates = epochs * updatesPerEpoch;
  return updates < 1 ? 1 : updates >= 0x1p63 ? uint64_t(1) << 63 : uint64_t(updates);
}

class Constant final: public Schedule {
public:
  double factor(uint64_t, double) const override { return 1; }
};

// times `by` after every so many epochs or updates, until `stop`.
class Factor final: public Schedule {
public:
  Factor(kj::Maybe<double> epochs, uint64_t steps, double by, double stop)
      : epochs(epochs), steps(steps), by(by), stop(stop) {}

  double factor(uint64_t update, double updatesPerEpoch) const override {
    uint64_t every = steps;
    KJ_IF_MAYBE(e, epochs) every = updatesOf(*e, updatesPerEpoch);
    return kj::max(power(by, update / every), stop);
  }

private:
  kj::Maybe<double> epochs;
  uint64_t steps;  // used without epochs
  double by;
  double stop;
};

// times `by` after each of the given epochs or updates.
class Step final: public Schedule {
public:
  Step(kj::Array<double> epochs, kj::Array<int64_t> steps, double by)
      : epochs(kj::mv(epochs)), steps(kj::mv(steps)), by(by) {}

  double factor(uint64_t update, double updatesPerEpoch) const override {
    uint64_t drops = 0;
    for (double epoch: epochs) drops += update >= updatesOf(epoch, updatesPerEpoch);
    for (int64_t step: steps) drops += update >= uint64_t(step);
    return power(by, drops);
  }

private:
  kj::Array<double> epochs;
  kj::Array<int64_t> steps;
  double by;
};

kj::Own<const Schedule> readConstant(configs::Reader&) {
  return kj::heap<Constant>();
}

kj::Own<const Schedule> readFactor(configs::Reader& reader) {
  auto epochs = reader.maybeReal(
      "every_epochs", "Epochs between drops, also a part of one (0.5).", {.above = 0});
  auto steps = reader.maybeInteger(
      "every_steps", "Updates between drops, in place of `every_epochs`.", {.atLeast = 1});
  double by = reader.real(
      "factor", "What a drop multiplies the learning rate by.", {.above = 0, .atMost = 1});
  double stop = reader.real("stop_factor", "Drops end at this share of the first learning rate.",
      {.atLeast = 0, .atMost = 1}, 0);
  requireOne(reader, "every_epochs", epochs != nullptr, "every_steps", steps != nullptr);
  return kj::heap<Factor>(epochs, uint64_t(steps.orDefault(1)), by, stop);
}

kj::Own<const Schedule> readStep(configs::Reader& reader) {
  auto epochs = reader.reals("epochs", "After which epochs to drop.", {.above = 0});
  auto steps = reader.integers(
      "steps", "After which updates to drop, in place of `epochs`.", {.atLeast = 1});
  double by = reader.real(
      "factor", "What a drop multiplies the learning rate by.", {.above = 0, .atMost = 1}, 0.1);
  requireOne(reader, "epochs", epochs.size() > 0, "steps", steps.size() > 0);
  return kj::heap<Step>(kj::mv(epochs), kj::mv(steps), by);
}

constexpr configs::Kind<kj::Own<const Schedule>> SCHEDULES[] = {
    {"constant", "The learning rate stays.", readConstant},
    {"factor", "Times a factor again and again, all at once each time: a staircase.", readFactor},
    {"step", "Times a factor at given places.", readStep},
};

}  // namespace

kj::Own<const Schedule> readSchedule(configs::Reader& reader, kj::StringPtr key) {
  return reader.kind<kj::Own<const Schedule>>(
      key, "How the learning rate changes while training.", SCHEDULES, "constant");
}

}  // namespace nn
