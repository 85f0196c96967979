#include "runner/experiment/expectations.h"

#include <doctest/doctest.h>

namespace runner {
namespace {

constexpr ExpectedFigure VALIDATION_LOSS = {"validation_loss", "", ExpectedFigure::VALIDATION_LOSS};
constexpr ExpectedFigure TRAIN_LOSS = {"train_loss", "", ExpectedFigure::TRAIN_LOSS};

TEST_CASE("certainMisses: names expectations of epochs and of validations that a run lacks") {
  const Expectation expectations[] = {
      {.figure = &VALIDATION_LOSS, .epoch = 3, .atMost = 1.0},
      {.figure = &VALIDATION_LOSS, .atMost = 1.0},
      {.figure = &TRAIN_LOSS, .atMost = 1.0},
  };
  auto misses = [&](uint epochs, bool validates) {
    return kj::strArray(certainMisses(expectations, epochs, validates), "\n");
  };
  constexpr kj::StringPtr UNREACHED =
      "expect.validation_loss will be missed: it is about epoch 3, and the run has only "_kj;
  constexpr kj::StringPtr WITHOUT_RECORDS =
      "expect.validation_loss will be missed: there are no records to validate on"_kj;
  CHECK(misses(3, true) == "");
  CHECK(misses(1, true) == kj::str(UNREACHED, "1 epoch"));
  CHECK(misses(2, false) == kj::str(UNREACHED, "2 epochs\n", WITHOUT_RECORDS));
  CHECK(misses(3, false) == kj::str(WITHOUT_RECORDS, '\n', WITHOUT_RECORDS));
}

}  // namespace
}  // namespace runner
