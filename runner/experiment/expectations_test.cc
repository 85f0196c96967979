#include "runner/experiment/expectations.h"

#include <doctest/doctest.h>

namespace runner {
namespace {

constexpr ExpectedFigure VALIDATION_LOSS = {"validation_loss", "", ExpectedFigure::VALIDATION_LOSS};
constexpr ExpectedFigure TRAIN_LOSS = {"train_loss", "", ExpectedFigure::TRAIN_LOSS};

TEST_CASE("neverReached: names expectations of epochs and of validations that a run lacks") {
  const Expectation expectations[] = {
      {.figure = &VALIDATION_LOSS, .epoch = 3, .atMost = 1.0},
      {.figure = &VALIDATION_LOSS, .atMost = 1.0},
      {.figure = &TRAIN_LOSS, .atMost = 1.0},
  };
  auto misses = [&](uint epochs, bool validates) {
    return kj::strArray(neverReached(expectations, nullptr, epochs, validates), "\n");
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

TEST_CASE("neverReached: says if all published figures are about epochs that a run lacks") {
  auto said = [](kj::Array<PublishedFigures> rows, uint epochs) {
    kj::Maybe<Published> published = Published{kj::str("a page"), kj::mv(rows)};
    return kj::strArray(neverReached(nullptr, published, epochs, true), "\n");
  };
  auto after = [](uint epoch) {
    PublishedFigures row;
    row.epoch = epoch;
    return row;
  };
  CHECK(said(kj::arr(after(9), after(5)), 4) ==
        "no row of published.rows can be compared with the run: the earliest is about epoch 5, and "
        "the run has only 4 epochs");
  CHECK(said(kj::arr(after(9), after(5)), 5) == "");
  CHECK(said(kj::arr(after(9), PublishedFigures()), 5) == "");
  CHECK(said(nullptr, 5) == "");
}

}  // namespace
}  // namespace runner
