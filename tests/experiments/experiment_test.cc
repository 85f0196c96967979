// An experiment of this folder must reach the figures of x.expected: a table of accuracies and
// losses per epoch, compared within tolerances. The launchers inline and local must give the same
// table and the same weights, digit by digit. To add one: write x.toml, run its test, and put the
// table that it prints into x.expected after reading it.
#include <doctest/doctest.h>
#include <kj/debug.h>
#include <math.h>
#include <stdlib.h>

#include <cstdio>

#include "tests/cluster/whole_runs.h"
#include "tests/run.h"
#include "tests/skip.h"
#include "tests/text.h"

namespace tests {
namespace {

// The bits of a run depend on the CPU's instruction set: another one rounds sums differently, and
// after an epoch, different images are on the other side of a decision boundary. With AVX2 in place
// of AVX-512 these accuracies differ by up to 0.006.
constexpr double ACCURACY_TOLERANCE = 0.02;
// For the mean loss of an epoch's images: about what two per cent of them contribute.
constexpr double LOSS_TOLERANCE = 0.05;

kj::String fileOf(kj::StringPtr ending) {
  auto name = ::getenv("EXPERIMENT");
  KJ_REQUIRE(name != nullptr, "EXPERIMENT names the experiment: see the BUILD file");
  return kj::str("tests/experiments/", name, ending);
}

// Returns the mean of the workers' training losses for each epoch.
kj::Array<double> lossesOf(const Trained& run) {
  kj::Vector<double> sums;
  uint workers = 0;
  eachEvent(run, [&](runner::Event::Reader event) {
    if (event.isStarted()) {
      workers = event.getStarted().getWorkers();
      sums.resize(event.getStarted().getEpochs());
      for (auto& sum: sums) sum = 0;
    } else if (event.isTrained()) {
      // The sum of at most two terms does not depend on their order.
      KJ_REQUIRE(workers <= 2);
      sums[event.getTrained().getEpoch() - 1] += event.getTrained().getLoss() / workers;
    }
  });
  return sums.releaseAsArray();
}

// Returns the first table of the run's table.md, with the loss in place of the time.
kj::String tableOf(const Trained& run) {
  auto rows = linesOf(readFile(kj::str(run.folder, "/table.md")));
  auto losses = lossesOf(run);
  REQUIRE(rows.size() >= losses.size() + 2);
  kj::String table;
  for (size_t i = 0; i < losses.size() + 2; i++) {
    // A row ends with " |".
    auto& row = rows[i];
    size_t time = row.size() - 2;
    while (row[time - 1] != '|') --time;
    char loss[32] = "loss";
    if (i == 1) snprintf(loss, sizeof(loss), "---");
    if (i >= 2) snprintf(loss, sizeof(loss), "%f", losses[i - 2]);
    table = kj::str(table, row.slice(0, time), " ", kj::StringPtr(loss), " |\n");
  }
  return table;
}

// The numbers of a row `| 1 | 0.5 | 0.25 |`.
kj::Array<double> numbersOf(kj::StringPtr row) {
  kj::Vector<double> numbers;
  for (size_t i: kj::indices(row)) {
    if (row[i] != '|' || i + 1 == row.size()) continue;
    char* end;
    numbers.add(::strtod(row.cStr() + i + 1, &end));
    KJ_REQUIRE(end > row.cStr() + i + 1, "no number", row);
  }
  return numbers.releaseAsArray();
}

void checkTable(kj::StringPtr got, kj::StringPtr expected) {
  INFO("got:\n", got, "\nexpected:\n", expected);
  auto gotRows = linesOf(got), expectedRows = linesOf(expected);
  REQUIRE(gotRows.size() == expectedRows.size());
  for (size_t i: kj::indices(gotRows)) {
    if (i < 2) {
      CHECK(gotRows[i] == expectedRows[i]);
      continue;
    }
    auto g = numbersOf(gotRows[i]), e = numbersOf(expectedRows[i]);
    REQUIRE(g.size() == 4);
    REQUIRE(e.size() == 4);
    CHECK(g[0] == e[0]);
    CHECK(fabs(g[1] - e[1]) <= ACCURACY_TOLERANCE);
    CHECK(fabs(g[2] - e[2]) <= ACCURACY_TOLERANCE);
    CHECK(fabs(g[3] - e[3]) <= LOSS_TOLERANCE);
  }
}

bool exists(kj::StringPtr path) {
  return Command({"test", "-e", path}).wait().exitCode == 0;
}

TEST_CASE("an experiment trains as expected, launched inline and locally to the same bits") {
  auto file = fileOf(".toml");
  // Debian has a package of fashion_mnist alone.
  if (!kj::StringPtr(::getenv("EXPERIMENT")).startsWith("fashion_mnist") &&
      ::getenv("RUNNER_DATASETS") == nullptr) {
    SKIP_CASE("RUNNER_DATASETS is not set");
  }
  auto local = train(file, {"cluster.launcher=local"});
  auto table = tableOf(local);
  auto expected = fileOf(".expected");
  checkTable(table, exists(expected) ? readFile(expected) : kj::str());
  auto inlined = train(file, {"cluster.launcher=inline"});
  CHECK(tableOf(inlined) == table);
  CHECK(inlined.weightsSha256 == local.weightsSha256);
}

}  // namespace
}  // namespace tests
