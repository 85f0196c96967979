#include "runner/experiment/asha.h"

#include <doctest/doctest.h>

namespace runner {
namespace {

const AshaConfig CONFIG = {.firstEpoch = 2, .keepOneIn = 3};

TEST_CASE("Asha: rungs lie at first_epoch times the powers of keep_one_in") {
  Asha asha(CONFIG);
  kj::Vector<uint> rungs;
  for (uint epoch = 0; epoch <= 60; ++epoch) {
    if (asha.isRung(epoch)) rungs.add(epoch);
  }
  CHECK(kj::strArray(rungs, ", ") == "2, 6, 18, 54");
}

TEST_CASE("Asha: the first run goes on, and from then on the best third of those that came") {
  Asha asha(CONFIG);
  CHECK(asha.keeps(2, 0.5));
  CHECK_FALSE(asha.keeps(2, 0.4));  // the second of two
  CHECK(asha.keeps(2, 0.6));        // the first of three
  CHECK(asha.keeps(2, 0.55));       // the second of four: two are kept of four
  CHECK_FALSE(asha.keeps(2, 0.5));  // the third of five
}

TEST_CASE("Asha: each rung compares by itself, and between rungs nobody is stopped") {
  Asha asha(CONFIG);
  CHECK(asha.keeps(2, 0.9));
  CHECK(asha.keeps(3, 0.1));
  CHECK(asha.keeps(6, 0.1));
  CHECK_FALSE(asha.keeps(2, 0.1));
}

TEST_CASE("Asha: runs that are equal are treated alike") {
  Asha asha(CONFIG);
  for (uint i = 0; i < 10; ++i) CHECK(asha.keeps(2, 0.5));
}

TEST_CASE("Asha: a run whose accuracy is no number is worse than one that is always wrong") {
  Asha asha(CONFIG);
  CHECK(asha.keeps(2, 0.0));
  CHECK_FALSE(asha.keeps(2, -kj::nan()));
  CHECK_FALSE(asha.keeps(2, kj::nan()));
}

}  // namespace
}  // namespace runner
