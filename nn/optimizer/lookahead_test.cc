#include "nn/optimizer/lookahead.h"

#include <doctest/doctest.h>

#include <cmath>

namespace nn {
namespace {

Lookahead read(kj::StringPtr keys) {
  configs::Diagnostics diagnostics;
  auto document = configs::parse("x.toml", keys, diagnostics);
  configs::Reading reading{diagnostics, {}};
  auto lookahead = configs::readDocument(*document, reading, Lookahead::read);
  CHECK(diagnostics.count() == 0);
  return lookahead;
}

TEST_CASE(
    "Lookahead: every few updates, slow values move towards the values, which then equal them") {
  auto lookahead = read("every = 2\ndecay = 0.75");
  RunLength run{.updatesPerEpoch = 10, .updates = 100};
  float values[] = {3, -1}, slow[] = {1, 1};
  CHECK(!lookahead.isDueAfter(0, run));
  lookahead.apply(0, run, values, slow);
  CHECK(values[0] == 3);
  CHECK(slow[0] == 1);
  CHECK(lookahead.isDueAfter(1, run));
  lookahead.apply(1, run, values, slow);
  CHECK(slow[0] == 1.5f);
  CHECK(slow[1] == 0.5f);
  CHECK(values[0] == 1.5f);
  CHECK(values[1] == 0.5f);
}

TEST_CASE("Lookahead: every run ends on the slow values, whatever the number of its updates") {
  auto lookahead = read("every = 5\ndecay = 0.5");
  RunLength run{.updatesPerEpoch = 10, .updates = 7};
  float values[] = {3}, slow[] = {1};
  CHECK(!lookahead.isDueAfter(5, run));
  CHECK(lookahead.isDueAfter(6, run));
  lookahead.apply(6, run, values, slow);
  CHECK(values[0] == 1);
  // After the end of the run, nothing special happens.
  CHECK(!lookahead.isDueAfter(7, run));
}

TEST_CASE("Lookahead: a run that would end on its initial values is refused") {
  struct {
    kj::StringPtr keys;
    uint64_t updates;
    bool isRefused;
  } rows[] = {{"every = 5", 4, true}, {"every = 5", 5, false},
      {"every = 5\ndecay = 1\npower = 1", 5, true}, {"every = 5\ndecay = 1\npower = 1", 6, false},
      {"every = 1\ndecay = 1\npower = 1", 1, true}, {"every = 1", 1, false}};
  for (auto& row: rows) {
    CAPTURE(row.keys.cStr());
    CAPTURE(row.updates);
    auto lookahead = read(row.keys);
    RunLength run{.updatesPerEpoch = 10, .updates = row.updates};
    configs::Diagnostics diagnostics;
    lookahead.check(run, diagnostics);
    CHECK((diagnostics.count() == 1) == row.isRefused);
    float values[] = {1}, slow[] = {1};
    for (uint64_t update = 0; update < row.updates; ++update) {
      values[0] += 1;
      lookahead.apply(update, run, values, slow);
    }
    CHECK((values[0] == 1) == row.isRefused);
  }
}

TEST_CASE("Lookahead: with several updates per step, slow values move after fewer steps") {
  auto lookahead = read("every = 5");
  RunLength run{.updatesPerEpoch = 10, .updates = 100};
  auto dueOf = [&](uint64_t updates) {
    uint due = 0;
    for (uint64_t step = 0; step < run.updates; ++step) {
      due += lookahead.inStepsOf(updates).isDueAfter(step, run);
    }
    return due;
  };
  CHECK(dueOf(1) == 20);
  CHECK(dueOf(2) == 50);
  CHECK(dueOf(7) == 100);
}

TEST_CASE("Lookahead: has the schedule of airbench94") {
  // Written as in the loop of airbench94: after t of T = 476 updates the decay is 0.95^5 (t / T)^3,
  // and 1 at the end.
  auto lookahead = read("every = 5\ndecay = 0.7737809375\npower = 3");
  RunLength run{.updatesPerEpoch = 48, .updates = 476};
  float values[] = {0}, slow[] = {0};
  double expected = 0, expectedSlow = 0;
  for (uint64_t update = 0; update < run.updates; ++update) {
    float gradient = float(std::sin(double(update)));
    values[0] += gradient;
    expected += gradient;
    lookahead.apply(update, run, values, slow);
    uint64_t t = update + 1;
    if (t % 5 == 0) {
      double decay = std::pow(0.95, 5) * std::pow(double(t) / 476, 3);
      expectedSlow += (expected - expectedSlow) * (1 - decay);
      expected = expectedSlow;
    }
    if (t == 476) expected = expectedSlow;
    CHECK(values[0] == doctest::Approx(expected).epsilon(1e-4));
  }
  CHECK(values[0] == slow[0]);
}

TEST_CASE("Lookahead: values that equal the slow values keep their bits") {
  auto lookahead = read("every = 1\ndecay = 0.3");
  float values[] = {0.1f, -7e-9f}, slow[] = {0.1f, -7e-9f};
  lookahead.apply(3, {.updatesPerEpoch = 10, .updates = 100}, values, slow);
  CHECK(values[0] == 0.1f);
  CHECK(values[1] == -7e-9f);
}

}  // namespace
}  // namespace nn
