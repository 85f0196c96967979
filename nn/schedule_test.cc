#include "nn/schedule.h"

#include <doctest/doctest.h>

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
  double at(uint64_t update, double updatesPerEpoch = 100) const {
    return schedule->factor(update, updatesPerEpoch);
  }
};

TEST_CASE("Schedule: constant if absent") {
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

TEST_CASE(
    "Schedule: factor by epochs takes parts of an epoch, rounds updates down, and stops where "
    "told") {
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

TEST_CASE("Schedule: step drops at the given places") {
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

}  // namespace
}  // namespace nn
