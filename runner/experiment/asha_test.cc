#include "runner/experiment/asha.h"

#include <doctest/doctest.h>

namespace runner {
namespace {

const AshaConfig CONFIG = {.firstEpoch = 2, .keepOneIn = 3};

TEST_CASE("Asha: rungs are at first_epoch times the powers of keep_one_in") {
  Asha asha(CONFIG);
  kj::Vector<uint> rungs;
  for (uint epoch = 0; epoch <= 60; ++epoch) {
    if (asha.isRung(epoch)) rungs.add(epoch);
  }
  CHECK(kj::strArray(rungs, ", ") == "2, 6, 18, 54");
}

TEST_CASE("Asha: the first run continues, and later ones if they are in the best third so far") {
  Asha asha(CONFIG);
  CHECK(asha.keeps(2, 0.5));
  CHECK_FALSE(asha.keeps(2, 0.4));  // the second of two
  CHECK(asha.keeps(2, 0.6));        // the first of three
  CHECK(asha.keeps(2, 0.55));       // the second of four, of which two are kept
  CHECK_FALSE(asha.keeps(2, 0.5));  // the third of five
}

TEST_CASE("Asha: each rung compares separately, and between rungs every run continues") {
  Asha asha(CONFIG);
  CHECK(asha.keeps(2, 0.9));
  CHECK(asha.keeps(3, 0.1));
  CHECK(asha.keeps(6, 0.1));
  CHECK_FALSE(asha.keeps(2, 0.1));
}

TEST_CASE("Asha: equal runs get the same decision") {
  Asha asha(CONFIG);
  for (uint i = 0; i < 10; ++i) CHECK(asha.keeps(2, 0.5));
}

TEST_CASE("Asha: a run whose accuracy is NaN is worse than one that is always wrong") {
  Asha asha(CONFIG);
  CHECK(asha.keeps(2, 0.0));
  CHECK_FALSE(asha.keeps(2, -kj::nan()));
  CHECK_FALSE(asha.keeps(2, kj::nan()));
}

TEST_CASE("whyStopsNothing: a rule without accuracies, or without epochs after it, stops no run") {
  AshaConfig config = {.firstEpoch = 3, .keepOneIn = 2};
  CHECK(whyStopsNothing(config, 4, true) == nullptr);
  CHECK(
      KJ_ASSERT_NONNULL(whyStopsNothing(config, 3, true)) ==
      "sweep.stop stops no run, because its first_epoch is 3, and no run continues after epoch 3");
  CHECK(KJ_ASSERT_NONNULL(whyStopsNothing(config, 4, false)) ==
        "sweep.stop stops no run, because there are no records to validate on");
}

}  // namespace
}  // namespace runner
