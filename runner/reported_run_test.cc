#include "runner/reported_run.h"

#include <doctest/doctest.h>

#include "runner/log_lines.h"

namespace runner {
namespace {

// Three epochs of 100 steps; the first takes 4 s, the others 2 s each, half of which is forward.
ReportedRun run() {
  auto epochs = kj::heapArray<EpochRecord>(3);
  for (uint i = 0; i < 3; i++) {
    auto& epoch = epochs[i];
    epoch.epoch = i + 1;
    epoch.step = 100 * (i + 1);
    epoch.globalStep = 200 * (i + 1);
    epoch.workers = 1;
    epoch.images = 1000;
    epoch.trainLoss = 0.3 - 0.1 * i;
    epoch.trainAccuracy = 0.7 + 0.1 * i;
    epoch.epoch_s = i == 0 ? 4 : 2;
    epoch.images_per_s = i == 0 ? 250 : 500;
    epoch.verbs.forward_s = epoch.epoch_s / 2;
    epoch.validationAccuracy = 0.6 + 0.1 * i;
  }
  auto speeds = kj::heapArray<SpeedRecord>(3);
  for (uint i = 0; i < 3; i++) {
    speeds[i] = SpeedRecord{};
    speeds[i].globalStep = 150 + 150 * i;
    speeds[i].batchLoss = 2.0 - i;
    speeds[i].batchAccuracy = 0.25 * i;
  }
  ReportedRun result;
  result.record.state = RunRecord::FINISHED;
  result.record.epochRecords = kj::mv(epochs);
  result.record.speeds = kj::mv(speeds);
  result.label = kj::str("x");
  return result;
}

ReportedRun withPublished(PublishedFigures figures, bool bySteps = false) {
  auto result = run();
  result.bySteps = bySteps;
  result.published = Published{kj::str("a page"), kj::arr(kj::mv(figures))};
  return result;
}

// `figure@epoch/step: ours`, one a line.
kj::String compared(const ReportedRun& run) {
  auto lines = KJ_MAP(each, compare(run)) {
    kj::String ours;
    KJ_IF_MAYBE(value, each.ours) ours = fixedPoint(*value, 2);
    return kj::str(each.figure, " of ", each.at, ": ", ours, "\n");
  };
  return kj::strArray(lines, "");
}

TEST_CASE("means leave out the first epoch, which warms up, unless it is the only one") {
  auto all = run();
  CHECK(meanEpoch_s(all.record) == 2);
  CHECK(meanImages_per_s(all.record) == 500);
  CHECK(KJ_ASSERT_NONNULL(meanStep(all.record)).forward_s == doctest::Approx(0.01));

  auto epochs = kj::heapArray<EpochRecord>(1);
  epochs[0] = all.record.epochRecords[0];
  RunRecord one;
  one.epochRecords = kj::mv(epochs);
  CHECK(meanEpoch_s(one) == 4);
  CHECK(KJ_ASSERT_NONNULL(meanStep(one)).forward_s == doctest::Approx(0.02));
  CHECK(meanEpoch_s(RunRecord()) == nullptr);
  CHECK(meanStep(RunRecord()) == nullptr);
}

TEST_CASE("compare: a figure of an epoch stands beside ours of that epoch") {
  PublishedFigures figures;
  figures.epoch = 2;
  figures.validationAccuracy = 0.9;
  figures.epoch_s = 1;
  CHECK(compared(withPublished(kj::mv(figures))) ==
        "validation accuracy of epoch 2: 0.70\ns an epoch of epoch 2: 2.00\n");

  PublishedFigures late;
  late.epoch = 9;
  late.loss = 0.1;
  CHECK(compared(withPublished(kj::mv(late))) == "train loss of epoch 9: \n");
}

TEST_CASE("compare: a figure of a step stands beside the nearest that was logged") {
  PublishedFigures figures;
  figures.step = 290;
  figures.loss = 0.5;
  CHECK(compared(withPublished(kj::mv(figures))) == "train loss of step 290: 1.00\n");

  PublishedFigures far;
  far.step = 1000;
  far.loss = 0.5;
  far.validationAccuracy = 0.5;
  CHECK(compared(withPublished(kj::mv(far))) ==
        "validation accuracy of step 1000: \ntrain loss of step 1000: \n");
}

TEST_CASE("compare: at the end stand our last figures, of a batch where logs tell steps") {
  PublishedFigures figures;
  figures.trainAccuracy = 0.9;
  figures.validationAccuracy = 0.9;
  figures.images_per_s = 100;
  auto copy = [&]() {
    PublishedFigures result;
    result.trainAccuracy = figures.trainAccuracy;
    result.validationAccuracy = figures.validationAccuracy;
    result.images_per_s = figures.images_per_s;
    return result;
  };
  CHECK(compared(withPublished(copy())) ==
        "train accuracy of the end: 0.90\nvalidation accuracy of the end: 0.80\n"
        "images/s of the end: 500.00\n");
  CHECK(compared(withPublished(copy(), true)).startsWith("train accuracy of the end: 0.50\n"));
}

TEST_CASE("judgeAll: runs that have finished are judged, a sweep's by its first too") {
  auto runs = kj::heapArrayBuilder<ReportedRun>(3);
  for (uint i = 0; i < 3; i++) {
    auto each = run();
    Expectation expectation{};
    static constexpr ExpectedFigure LOSS = {
        "train_loss", "", [](const EpochRecord& e) { return kj::Maybe<double>(e.trainLoss); }};
    expectation.figure = &LOSS;
    expectation.withinOfFirstRun = 0.01;
    each.expectations = kj::arr(expectation);
    each.label = kj::str("run ", i);
    if (i == 1) each.record.epochRecords[2].trainLoss = 0.5;
    if (i == 2) each.record.state = RunRecord::FAILED;
    runs.add(kj::mv(each));
  }
  auto all = runs.finish();
  judgeAll(all.slice(0, 1));
  CHECK(all[0].verdicts.size() == 0);
  judgeAll(all);
  CHECK(all[0].verdicts.size() == 0);
  CHECK(all[2].verdicts.size() == 0);
  auto missed = missedOf(all);
  REQUIRE(missed.size() == 1);
  CHECK(missed[0] ==
        "expectation missed: run 1: train_loss of epoch 3 is 0.5, expected within 0.01 of the "
        "first run's 0.1");
}

}  // namespace
}  // namespace runner
