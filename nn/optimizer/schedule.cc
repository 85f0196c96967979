#include "nn/optimizer/schedule.h"

#include <float.h>
#include <kj/array.h>

#include "nn/loops/power.h"

namespace nn {
namespace {

// Reports an error unless exactly one of two keys is given.
void requireOne(configs::Reader& reader, kj::StringPtr first, bool hasFirst, kj::StringPtr second,
    bool hasSecond) {
  if (hasFirst && hasSecond) {
    reader.error(first, kj::str("`", first, "` and `", second, "` cannot both be given"),
        "leave one of them out");
  } else if (!hasFirst && !hasSecond && !reader.isManual()) {
    reader.error(first, kj::str("this schedule needs `", first, "` or `", second, "`"));
  }
}

// Returns `updates` rounded down. A product that would be whole without rounding errors counts as
// whole: 0.29 · 100 is 28.999999999999996 in double, and gives 29.
uint64_t wholeUpdates(double updates) {
  updates *= 1 + 4 * DBL_EPSILON;
  return updates >= 0x1p63 ? uint64_t(1) << 63 : uint64_t(updates);
}

// A number of updates, which may be given in epochs.
struct Period {
  kj::Maybe<double> epochs;
  kj::Maybe<int64_t> steps;  // used without epochs

  uint64_t updates(const RunLength& run) const {
    KJ_IF_MAYBE(e, epochs) return run.updatesIn(*e);
    return uint64_t(steps.orDefault(1));
  }
};

class Constant final: public Schedule {
public:
  double factor(uint64_t, const RunLength&) const override { return 1; }
};

// Multiplies by `by` after each period, but never goes below `stop`.
class Factor final: public Schedule {
public:
  Factor(Period every, double by, double stop): every(every), by(by), stop(stop) {}

  double factor(uint64_t update, const RunLength& run) const override {
    return kj::max(power(by, update / every.updates(run)), stop);
  }

private:
  Period every;
  double by;
  double stop;
};

// Multiplies by `by` after each of the given epochs or updates.
class Step final: public Schedule {
public:
  Step(kj::Array<double> epochs, kj::Array<int64_t> steps, double by)
      : epochs(kj::mv(epochs)), steps(kj::mv(steps)), by(by) {}

  double factor(uint64_t update, const RunLength& run) const override {
    uint64_t drops = 0;
    for (double epoch: epochs) drops += update >= run.updatesIn(epoch);
    for (int64_t step: steps) drops += update >= uint64_t(step);
    return power(by, drops);
  }

private:
  kj::Array<double> epochs;
  kj::Array<int64_t> steps;
  double by;
};

// Returns the part of the run before `update`, from 0 to 1.
double share(uint64_t update, const RunLength& run) {
  return update >= run.updates ? 1 : double(update) / double(run.updates);
}

// end + (1 - end) (1 - u / T)^power
class Poly final: public Schedule {
public:
  Poly(double exponent, double end): exponent(exponent), end(end) {}

  double factor(uint64_t update, const RunLength& run) const override {
    return end + (1 - end) * realPower(1 - share(update, run), exponent);
  }

private:
  double exponent;
  double end;
};

// cos(x) for 0 ≤ x ≤ pi / 2, by its series up to x^22: the rest is below 1e-18. cos() differs
// between machines.
double cosine(double x) {
  double square = x * x, sum = 1;
  for (int n = 22; n > 0; n -= 2) sum = 1 - sum * square / (n * (n - 1));
  return sum;
}

// end + (1 - end) (1 + cos(pi u / T)) / 2 (Loshchilov and Hutter 2017, arXiv 1608.03983, equation
// 5, without restarts)
class Cosine final: public Schedule {
public:
  explicit Cosine(double end): end(end) {}

  double factor(uint64_t update, const RunLength& run) const override {
    constexpr double HALF_PI = 1.57079632679489661923;
    // (1 + cos(2x)) / 2 = cos²(x)
    double root = cosine(HALF_PI * share(update, run));
    return end + (1 - end) * (root * root);
  }

private:
  double end;
};

// start at update 0, 1 at update floor(peak · T), end at T; straight lines between.
class Triangular final: public Schedule {
public:
  Triangular(double start, double peak, double end): start(start), peak(peak), end(end) {}

  double factor(uint64_t update, const RunLength& run) const override {
    uint64_t top = wholeUpdates(peak * double(run.updates));
    if (update < top) {
      double rise = double(update) / double(top);
      return start * (1 - rise) + rise;
    }
    if (update >= run.updates) return end;
    double fall = double(update - top) / double(run.updates - top);
    return (1 - fall) + end * fall;
  }

private:
  double start;
  double peak;
  double end;
};

// Another schedule, multiplied by a ramp during the first updates.
class WarmUp final: public Schedule {
public:
  WarmUp(kj::Own<const Schedule> row, Period length, double from)
      : row(kj::mv(row)), length(length), from(from) {}

  double factor(uint64_t update, const RunLength& run) const override {
    uint64_t end = warmUp(run);
    double factor = row->factor(update, run);
    if (update >= end) return factor;
    return factor * (from + (1 - from) * (double(update) / double(end)));
  }
  uint64_t warmUp(const RunLength& run) const override { return length.updates(run); }

private:
  kj::Own<const Schedule> row;
  Period length;
  double from;
};

kj::Own<const Schedule> readConstant(configs::Reader&) {
  return kj::heap<Constant>();
}

kj::Own<const Schedule> readFactor(configs::Reader& reader) {
  auto epochs = reader.maybeReal(
      "every_epochs", "Epochs between drops. May be a fraction (0.5).", {.above = 0});
  auto steps = reader.maybeInteger(
      "every_steps", "Updates between drops, instead of `every_epochs`.", {.atLeast = 1});
  double by = reader.real("factor", "Each drop multiplies the learning rate by this factor.",
      {.above = 0, .atMost = 1});
  double stop = reader.real("stop_factor",
      "The learning rate does not drop below this share of the optimizer's learning rate.",
      {.atLeast = 0, .atMost = 1}, 0);
  requireOne(reader, "every_epochs", epochs != nullptr, "every_steps", steps != nullptr);
  return kj::heap<Factor>(Period{epochs, steps}, by, stop);
}

kj::Own<const Schedule> readStep(configs::Reader& reader) {
  auto epochs =
      reader.reals("epochs", "The epochs after which the learning rate drops.", {.above = 0});
  auto steps = reader.integers("steps",
      "The updates after which the learning rate drops, instead of `epochs`.", {.atLeast = 1});
  double by = reader.real("factor", "Each drop multiplies the learning rate by this factor.",
      {.above = 0, .atMost = 1}, 0.1);
  requireOne(reader, "epochs", epochs.size() > 0, "steps", steps.size() > 0);
  return kj::heap<Step>(kj::mv(epochs), kj::mv(steps), by);
}

double readEndFactor(configs::Reader& reader) {
  return reader.real("end_factor",
      "The learning rate at the end of the run, as a share of the optimizer's learning rate.",
      {.atLeast = 0, .atMost = 1}, 0);
}

kj::Own<const Schedule> readPoly(configs::Reader& reader) {
  double exponent = reader.real("power",
      "Exponent of the curve. 1 gives a straight line. With a larger exponent, the learning rate "
      "falls faster at first.",
      {.above = 0, .atMost = 1000}, 1);
  return kj::heap<Poly>(exponent, readEndFactor(reader));
}

kj::Own<const Schedule> readCosine(configs::Reader& reader) {
  return kj::heap<Cosine>(readEndFactor(reader));
}

kj::Own<const Schedule> readTriangular(configs::Reader& reader) {
  double start = reader.real("start_factor",
      "The learning rate at the first update, as a share of the optimizer's learning rate.",
      {.atLeast = 0, .atMost = 1}, 0);
  double peak = reader.real("peak_at",
      "The share of the run after which the learning rate reaches its maximum, rounded down to "
      "whole updates.",
      {.atLeast = 0, .below = 1}, 0.5);
  return kj::heap<Triangular>(start, peak, readEndFactor(reader));
}

// Calls `read`, and adds the keys of a warm-up.
template <kj::Own<const Schedule> (*read)(configs::Reader&)>
kj::Own<const Schedule> withWarmUp(configs::Reader& reader) {
  auto row = read(reader);
  auto epochs = reader.maybeReal("warmup_epochs",
      "Warm-up: number of epochs in which the learning rate rises linearly to that of the schedule "
      "(Goyal et al. 2017). May be a fraction.",
      {.above = 0});
  auto steps = reader.maybeInteger("warmup_steps",
      "Length of the warm-up in updates, instead of `warmup_epochs`.", {.atLeast = 1});
  auto from = reader.maybeReal("warmup_from",
      "The learning rate at the first update of a warm-up, as a share of the schedule's learning "
      "rate. Default: 0.",
      {.atLeast = 0, .atMost = 1});
  if (epochs == nullptr && steps == nullptr) {
    if (from != nullptr) {
      reader.error("warmup_from", "`warmup_from` needs `warmup_epochs` or `warmup_steps`");
    }
    return row;
  }
  requireOne(reader, "warmup_epochs", epochs != nullptr, "warmup_steps", steps != nullptr);
  return kj::heap<WarmUp>(kj::mv(row), Period{epochs, steps}, from.orDefault(0));
}

constexpr configs::Kind<kj::Own<const Schedule>> SCHEDULES[] = {
    {"constant", "The learning rate does not change.", withWarmUp<readConstant>},
    {"factor", "Multiplies the learning rate by a factor at regular intervals.",
        withWarmUp<readFactor>},
    {"step", "Multiplies the learning rate by a factor after given epochs or updates.",
        withWarmUp<readStep>},
    {"poly",
        "The learning rate falls during the whole run, in proportion to a power of the remaining "
        "share of the run.",
        withWarmUp<readPoly>},
    {"cosine", "The learning rate falls during the whole run, like half a period of a cosine.",
        withWarmUp<readCosine>},
    {"triangular",
        "The learning rate rises linearly, and then falls linearly until the end of the run.",
        withWarmUp<readTriangular>},
};

}  // namespace

uint64_t RunLength::updatesIn(double epochs) const {
  return kj::max(1u, wholeUpdates(epochs * updatesPerEpoch));
}

kj::Own<const Schedule> readSchedule(configs::Reader& reader, kj::StringPtr key) {
  return reader.kind<kj::Own<const Schedule>>(key,
      "How the learning rate changes during training. In a run of T updates, update u (counted "
      "from 0) uses the value of the schedule at the fraction u / T of the run. The last update is "
      "T - 1, so no update uses the value at the end of the run.",
      SCHEDULES, "constant");
}

kj::Maybe<kj::Own<const Schedule>> maybeReadSchedule(
    configs::Reader& reader, kj::StringPtr key, kj::StringPtr doc) {
  return reader.maybeKind<kj::Own<const Schedule>>(key, doc, SCHEDULES);
}

}  // namespace nn
