#include "nn/optimizer/schedule.h"

#include <doctest/doctest.h>

#include <cmath>

#include "nn/loops/power.h"

namespace nn {
namespace {

struct Read {
  configs::Diagnostics diagnostics;
  kj::Own<configs::Document> document;
  kj::Own<const Schedule> schedule;

  explicit Read(kj::StringPtr text) {
    document = configs::parse("x.toml", text, diagnostics);
    configs::Reading reading{diagnostics, {}};
    schedule = configs::readDocument(*document, reading,
        [](configs::Reader& reader) { return readSchedule(reader, "schedule"); });
  }
  double at(uint64_t update, double updatesPerEpoch = 100, uint64_t updates = 1000) const {
    return schedule->factor(update, {updatesPerEpoch, updates});
  }
};

TEST_CASE("Schedule: is constant by default") {
  Read read("");
  CHECK(read.diagnostics.count() == 0);
  CHECK(read.at(0) == 1);
  CHECK(read.at(1000000) == 1);
}

TEST_CASE("Schedule: factor drops after whole numbers of updates, as MXNet's FactorScheduler") {
  Read read("schedule = { kind = \"factor\", every_steps = 10, factor = 0.5 }");
  CHECK(read.diagnostics.count() == 0);
  // MXNet's own words: count = 0; while num_update > count + step: count += step, lr *= factor.
  double rate = 1;
  uint64_t count = 0;
  for (uint64_t update = 0; update < 100; ++update) {
    uint64_t numUpdate = update + 1;
    while (numUpdate > count + 10) {
      count += 10;
      rate *= 0.5;
    }
    CHECK(read.at(update) == rate);
  }
}

TEST_CASE("Schedule: parts of an epoch that are whole updates lose no update by rounding") {
  Read steps("schedule = { kind = \"step\", epochs = [0.29], factor = 0.5 }");
  CHECK(steps.at(28) == 1);
  CHECK(steps.at(29) == 0.5);
  Read drops("schedule = { kind = \"factor\", every_epochs = 0.29, factor = 0.5 }");
  CHECK(drops.at(28) == 1);
  CHECK(drops.at(29) == 0.5);
  Read warm("schedule = { kind = \"constant\", warmup_epochs = 0.29 }");
  CHECK(warm.at(28) == 28.0 / 29);
  CHECK(warm.at(29) == 1);
  Read peak("schedule = { kind = \"triangular\", peak_at = 0.29 }");
  CHECK(peak.at(28, 100, 100) == 28.0 / 29);
  CHECK(peak.at(29, 100, 100) == 1);
  RunLength run{.updatesPerEpoch = 100, .updates = 1000};
  for (uint n = 1; n <= 1000; ++n) CHECK(run.updatesIn(n / 100.0) == n);
  CHECK(run.updatesIn(0.2899) == 28);
  CHECK(run.updatesIn(1e-9) == 1);
  CHECK(run.updatesIn(1e300) == uint64_t(1) << 63);
}

TEST_CASE(
    "Schedule: factor by epochs takes parts of epochs, rounds down, and stops at stop_factor") {
  Read read(
      "schedule = { kind = \"factor\", every_epochs = 0.5, factor = 0.1, stop_factor = 0.005 }");
  CHECK(read.diagnostics.count() == 0);
  // Half an epoch of 195.3 updates is 97.
  CHECK(read.at(96, 195.3) == 1);
  CHECK(read.at(97, 195.3) == 0.1);
  CHECK(read.at(193, 195.3) == 0.1);
  CHECK(read.at(194, 195.3) == doctest::Approx(0.01));
  CHECK(read.at(291, 195.3) == 0.005);
  // An epoch of less than one update still counts as one.
  CHECK(read.at(0, 0.2) == 1);
  CHECK(read.at(1, 0.2) == 0.1);
}

TEST_CASE("Schedule: step drops at the given updates") {
  Read epochs("schedule = { kind = \"step\", epochs = [2, 3.5], factor = 0.1 }");
  CHECK(epochs.diagnostics.count() == 0);
  CHECK(epochs.at(199) == 1);
  CHECK(epochs.at(200) == 0.1);
  CHECK(epochs.at(349) == 0.1);
  CHECK(epochs.at(350) == doctest::Approx(0.01));
  Read steps("schedule = { kind = \"step\", steps = [7], factor = 0.25 }");
  CHECK(steps.at(6) == 1);
  CHECK(steps.at(7) == 0.25);
}

TEST_CASE("Schedule: epochs and updates exclude each other") {
  CHECK(Read("schedule = { kind = \"factor\", factor = 0.5 }").diagnostics.count() == 1);
  CHECK(Read("schedule = { kind = \"factor\", every_steps = 1, every_epochs = 1, factor = 0.5 }")
            .diagnostics.count() == 1);
  CHECK(Read("schedule = { kind = \"step\" }").diagnostics.count() == 1);
}

TEST_CASE("power: real exponents agree with pow(), and whole ones are products") {
  for (double base: {0.0, 1e-9, 0.3, 0.999, 1.0, 2.5}) {
    for (double exponent: {0.0, 0.5, 0.9, 1.0, 2.0, 3.7, 20.125}) {
      CHECK(realPower(base, exponent) == doctest::Approx(std::pow(base, exponent)).epsilon(1e-13));
    }
  }
  CHECK(realPower(0.3, 3) == 0.3 * (0.3 * 0.3));
}

TEST_CASE("Schedule: poly falls from 1 at the first update to its end after the last update") {
  Read line("schedule = { kind = \"poly\" }");
  CHECK(line.diagnostics.count() == 0);
  CHECK(line.at(0) == 1);
  CHECK(line.at(250) == 0.75);
  CHECK(line.at(999) == doctest::Approx(0.001));
  CHECK(line.at(1000) == 0);
  CHECK(line.at(5000) == 0);
  Read curve("schedule = { kind = \"poly\", power = 2, end_factor = 0.1 }");
  CHECK(curve.at(0) == 1);
  CHECK(curve.at(500) == doctest::Approx(0.1 + 0.9 * 0.25));
  CHECK(curve.at(1000) == 0.1);
  // A run of one update has the beginning of the curve.
  CHECK(curve.at(0, 100, 1) == 1);
}

TEST_CASE("Schedule: cosine is half a period") {
  Read read("schedule = { kind = \"cosine\", end_factor = 0.2 }");
  CHECK(read.diagnostics.count() == 0);
  CHECK(read.at(0) == 1);
  CHECK(read.at(1000) == doctest::Approx(0.2).epsilon(1e-15));
  for (uint64_t update = 0; update <= 1000; ++update) {
    double wave = 0.2 + 0.8 * (1 + std::cos(std::acos(-1.0) * double(update) / 1000)) / 2;
    CHECK(std::abs(read.at(update) - wave) < 1e-15);
  }
}

TEST_CASE("Schedule: triangular equals get_lr of airbench94") {
  Read read(
      "schedule = { kind = \"triangular\", start_factor = 0.2, peak_at = 0.23, "
      "end_factor = 0.07 }");
  CHECK(read.diagnostics.count() == 0);
  // 48 updates per epoch and 9.9 epochs make ceil(475.2) = 476 updates. The peak is at int(0.23 ·
  // 476) = 109.
  auto at = [&](uint64_t update) { return read.at(update, 48, 476); };
  CHECK(at(0) == 0.2);
  CHECK(at(54) == doctest::Approx(0.2 + 0.8 * 54 / 109));
  CHECK(at(108) < 1);
  CHECK(at(109) == 1);
  CHECK(at(110) == doctest::Approx(1 - 0.93 / 367));
  CHECK(at(475) == doctest::Approx(0.07 + 0.93 / 367));
  CHECK(at(476) == 0.07);
  CHECK(at(9999) == 0.07);
  // A peak in the first update: no rise.
  Read fall("schedule = { kind = \"triangular\", start_factor = 0.2, peak_at = 0 }");
  CHECK(fall.at(0) == 1);
  CHECK(fall.at(500) == 0.5);
}

TEST_CASE("Schedule: every kind of schedule may have a warm-up") {
  Read constant("schedule = { kind = \"constant\", warmup_steps = 4, warmup_from = 0.2 }");
  CHECK(constant.diagnostics.count() == 0);
  CHECK(constant.at(0) == 0.2);
  CHECK(constant.at(1) == doctest::Approx(0.4));
  CHECK(constant.at(3) == doctest::Approx(0.8));
  CHECK(constant.at(4) == 1);
  CHECK(constant.at(1000) == 1);
  // A warm-up does not move the drops of a schedule.
  Read step("schedule = { kind = \"step\", steps = [50], factor = 0.1, warmup_epochs = 1 }");
  CHECK(step.at(0) == 0);
  CHECK(step.at(49) == doctest::Approx(0.49));
  CHECK(step.at(50) == doctest::Approx(0.05));
  CHECK(step.at(100) == 0.1);
  Read cosine("schedule = { kind = \"cosine\", warmup_epochs = 2 }"), plain(
                                                                          "schedule = { kind = "
                                                                          "\"cosine\" }");
  CHECK(cosine.at(100) == plain.at(100) / 2);
  CHECK(cosine.at(200) == plain.at(200));
}

TEST_CASE("Schedule: a warm-up has only one length, and `warmup_from` needs a length") {
  CHECK(Read("schedule = { kind = \"poly\", warmup_steps = 4, warmup_epochs = 1 }")
            .diagnostics.count() == 1);
  CHECK(Read("schedule = { kind = \"poly\", warmup_from = 0.1 }").diagnostics.count() == 1);
}

}  // namespace
}  // namespace nn
