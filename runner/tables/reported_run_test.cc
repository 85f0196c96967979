#include "runner/tables/reported_run.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <kj/io.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runner/system/files.h"
#include "runner/text/numbers.h"
#include "tests/text.h"

namespace runner {
namespace {

using tests::contains;

// Three epochs of 100 steps. The first takes 4 s and the others 2 s each, half of which is forward.
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
  if (bySteps) result.logStyle = &LOG_STYLES[1];
  result.published = Published{kj::str("a page"), kj::arr(kj::mv(figures))};
  return result;
}

// Returns `figure@epoch/step: ours`, one per line.
kj::String compared(const ReportedRun& run) {
  auto lines = KJ_MAP(each, compare(run)) {
    kj::String ours;
    KJ_IF_MAYBE(value, each.ours) ours = fixedPoint(*value, 2);
    return kj::str(each.figure, " of ", each.at, ": ", ours, "\n");
  };
  return kj::strArray(lines, "");
}

TEST_CASE("readerHint: reports that workers waited for records, if that took long") {
  auto reading = run();
  CHECK(readerHint(reading.record) == nullptr);
  // The first epoch does not count.
  reading.record.epochRecords[0].verbs.read_s = 10;
  CHECK(readerHint(reading.record) == nullptr);
  // Less than ten seconds of waiting do not matter.
  for (auto& epoch: reading.record.epochRecords.slice(1, 3)) epoch.verbs.read_s = 0.25;
  CHECK(readerHint(reading.record) == nullptr);
  for (auto& epoch: reading.record.epochRecords.slice(1, 3)) {
    epoch.verbs.read_s = 6;
    epoch.verbs.forward_s = 24;
  }
  CHECK(KJ_ASSERT_NONNULL(readerHint(reading.record))
            .startsWith("hint: the run was reader-bound: workers waited for records during 20 % "));
  CHECK(readerHint(RunRecord()) == nullptr);
}

TEST_CASE("lossHint: reports a loss and an accuracy that are no better than those of guessing") {
  auto reading = run();
  auto& epochs = reading.record.epochRecords;
  auto hintFor = [&](double loss, double accuracy) {
    epochs.back().trainLoss = loss;
    epochs.back().trainAccuracy = accuracy;
    return lossHint(reading.record, 10);
  };
  CHECK(hintFor(2.28, 0.1) == nullptr);
  // Large logits make the loss large, although most of them are right.
  CHECK(hintFor(146, 0.87) == nullptr);
  CHECK(KJ_ASSERT_NONNULL(hintFor(2.303, 0.11))
            .startsWith("hint: the network has learned nothing. In the last epoch, its training "
                        "accuracy is 0.110, and its training loss 2.30. Guessing among 10 classes "
                        "gives 0.100 and 2.30. "));
  CHECK(lossHint(reading.record, 20) == nullptr);
  // One epoch may be too short to learn anything.
  auto last = kj::mv(epochs.back());
  epochs = kj::arr(kj::mv(last));
  CHECK(lossHint(reading.record, 10) == nullptr);
}

TEST_CASE("meanEpoch_s: leaves out the first epoch, which warms up, unless it is the only one") {
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

TEST_CASE("meanEpoch_s: leaves out a last epoch that was cut short, unless no other is left") {
  auto all = run();
  auto& last = all.record.epochRecords[2];
  last.epoch_s = 1;
  last.images = 980;
  all.record.globalBatchSize = 20;
  CHECK(meanEpoch_s(all.record) == 1.5);
  last.images = 500;
  CHECK(meanEpoch_s(all.record) == 2);
  CHECK(KJ_ASSERT_NONNULL(meanStep(all.record)).forward_s == doctest::Approx(0.01));

  RunRecord two;
  two.epochRecords = kj::heapArray(all.record.epochRecords.slice(1, 3));
  CHECK(meanEpoch_s(two) == 1);
}

TEST_CASE(
    "compare: a run that has not finished has no figures of the end, but has those of its epochs") {
  for (auto state:
      {RunRecord::FAILED, RunRecord::INTERRUPTED, RunRecord::STOPPED, RunRecord::UNFINISHED}) {
    PublishedFigures end;
    end.validationAccuracy = 0.9;
    end.loss = 0.1;
    end.images_per_s = 100;
    auto broken = withPublished(kj::mv(end), true);
    broken.record.state = state;
    CHECK(compared(broken) ==
          "validation accuracy of the end: \ntrain loss of the end: \nimages/s of the end: \n");
    PublishedFigures early;
    early.epoch = 1;
    early.validationAccuracy = 0.9;
    broken.published = Published{kj::str("a page"), kj::arr(kj::mv(early))};
    CHECK(compared(broken) == "validation accuracy of epoch 1: 0.60\n");
  }
}

TEST_CASE("compare: pairs a published figure of an epoch with ours of that epoch") {
  PublishedFigures figures;
  figures.epoch = 2;
  figures.validationAccuracy = 0.9;
  figures.epoch_s = 1;
  CHECK(compared(withPublished(kj::mv(figures))) ==
        "validation accuracy of epoch 2: 0.70\ns per epoch of epoch 2: 2.00\n");

  PublishedFigures late;
  late.epoch = 9;
  late.loss = 0.1;
  CHECK(compared(withPublished(kj::mv(late))) == "train loss of epoch 9: \n");
}

TEST_CASE("compare: pairs a published figure of a step with that of the nearest logged step") {
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

TEST_CASE("compare: pairs figures of the end with our last ones, of a batch if logs count steps") {
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

TEST_CASE("judgeAll: judges only finished runs, and compares the runs of a sweep with its first") {
  auto runs = kj::heapArrayBuilder<ReportedRun>(3);
  for (uint i = 0; i < 3; i++) {
    auto each = run();
    Expectation expectation{};
    static constexpr ExpectedFigure LOSS = {"train_loss", "", ExpectedFigure::TRAIN_LOSS};
    expectation.figure = &LOSS;
    expectation.withinOfFirstRun = 0.01;
    each.expectations = kj::arr(expectation);
    each.label = kj::str("run ", i);
    each.record.folder = kj::str("runs/x/", i);
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

kj::String newFolder(kj::StringPtr name) {
  auto folder = kj::str(::getenv("TEST_TMPDIR"), "/", name);
  REQUIRE(::mkdir(folder.cStr(), 0777) == 0);
  return folder;
}

TEST_CASE("judgeBySweeps: finds the sweep of a run whatever path names the run's folder") {
  auto parent = newFolder("a sweep");
  auto link = kj::str(::getenv("TEST_TMPDIR"), "/a link");
  REQUIRE(::symlink(kj::str(parent, "/second").cStr(), link.cStr()) == 0);
  for (auto name: {"first", "second"}) {
    REQUIRE(::mkdir(kj::str(parent, "/", name).cStr(), 0777) == 0);
  }
  writeWhole(kj::str(parent, "/runs.txt"), "first\nsecond\n");
  // Returns how many verdicts the run in `folder` gets. The sweep's first run did not finish.
  auto verdictsOf = [](kj::StringPtr folder) {
    auto each = run();
    static constexpr ExpectedFigure LOSS = {"train_loss", "", ExpectedFigure::TRAIN_LOSS};
    Expectation expectation{};
    expectation.figure = &LOSS;
    expectation.withinOfFirstRun = 0.01;
    each.expectations = kj::arr(expectation);
    each.record.folder = kj::str(folder);
    judgeBySweeps(kj::arrayPtr(&each, 1));
    return each.verdicts.size();
  };
  CHECK(verdictsOf(kj::str(parent, "/second")) == 1);
  CHECK(verdictsOf(link) == 1);
  auto before = ::open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  REQUIRE(before >= 0);
  kj::AutoCloseFd owned(before);
  KJ_DEFER(REQUIRE(::fchdir(before) == 0));
  REQUIRE(::chdir(parent.cStr()) == 0);
  CHECK(verdictsOf("second") == 1);
  CHECK(verdictsOf("first") == 0);
  REQUIRE(::chdir("second") == 0);
  CHECK(verdictsOf(".") == 1);
}

TEST_CASE("reportedRun: reports an experiment.toml that is no longer understood, and shows it") {
  auto folder = newFolder("old");
  writeWhole(kj::str(folder, "/experiment.toml"), "name = \"x\"\nold_key = 1\n");
  RunRecord record;
  record.folder = kj::str(folder);
  auto old = reportedRun(kj::mv(record), kj::str("x"));
  CHECK(old.resolved.startsWith("name = "));
  REQUIRE(old.unread.size() == 1);
  CHECK(old.unread[0].startsWith("[expect] and [published] of the run are left out: "));
  CHECK(contains(old.unread[0], "/old/experiment.toml:"));
  CHECK_FALSE(contains(old.unread[0], "\n"));

  RunRecord again;
  again.folder = kj::str(folder);
  CHECK(reportedRun(kj::mv(again), kj::str("x"), kj::str("name = 3\n")).resolved == "name = 3\n");

  RunRecord bare;
  bare.folder = newFolder("bare");
  CHECK(reportedRun(kj::mv(bare), kj::str("x")).unread.size() == 0);
}

TEST_CASE("tellApart: runs that differ in dozens of settings keep their names") {
  auto runs = kj::heapArray<ReportedRun>(2);
  for (uint i = 0; i < 2; i++) {
    runs[i].label = kj::str("x/", i);
    kj::String text = kj::str("[train]\n");
    for (uint key = 0; key < 40; key++) text = kj::str(text, "setting_", key, " = ", i, "\n");
    runs[i].resolved = kj::mv(text);
  }
  tellApart(runs);
  CHECK(runs[1].settings.size() == 40);
  CHECK(runs[1].label == "x/1");
  CHECK_FALSE(areNamedBySettings(runs));
}

TEST_CASE("tellApart: settings of a sweep's runs have the order and spelling of their folders") {
  auto runs = kj::heapArray<ReportedRun>(2);
  for (uint i = 0; i < 2; i++) {
    runs[i].label = kj::str("mnist/momentum=", i, ",batch_size=", 100 + i, "-1f00cafe");
    runs[i].resolved = kj::str(
        "[data]\nbatch_size = ", 100 + i, "\nseed = ", i, "\n[train]\nmomentum = ", i, ".0\n");
  }
  tellApart(runs);
  CHECK(runs[1].label == "momentum=1,batch_size=101,seed=1");
}

TEST_CASE("tellApart: names stay if one run's experiment is not known") {
  auto runs = kj::heapArray<ReportedRun>(3);
  for (uint i = 0; i < 3; i++) {
    runs[i].label = kj::str("x/", i);
    if (i > 0) runs[i].resolved = kj::str("seed = ", i, "\n");
  }
  tellApart(runs);
  CHECK(settingsOf(runs[0]) == "seed=");
  CHECK(settingsOf(runs[2]) == "seed=2");
  CHECK(runs[0].label == "x/0");
  CHECK(runs[2].label == "x/2");
}

TEST_CASE("readConfusion: reads the matrix only for finished runs, and says why it cannot") {
  auto finished = run();
  finished.record.folder = kj::str(::getenv("TEST_TMPDIR"), "/confused");
  REQUIRE(::mkdir(finished.record.folder.cStr(), 0777) == 0);
  auto path = kj::str(finished.record.folder, "/confusion.csv");
  finished.record.state = RunRecord::FINISHED;
  readConfusion(finished);
  CHECK(finished.confusion.size() == 0);
  CHECK(finished.unread.size() == 0);
  writeWhole(path, "label,predicted,images\n3,5,7\n");
  readConfusion(finished);
  REQUIRE(finished.confusion.size() == 1);
  CHECK(finished.confusion[0].predicted == 5);

  // This run continues from a checkpoint, and has not reached its last validation again.
  auto unfinished = run();
  unfinished.record.folder = kj::str(finished.record.folder);
  unfinished.record.state = RunRecord::UNFINISHED;
  readConfusion(unfinished);
  CHECK(unfinished.confusion.size() == 0);

  writeWhole(path, "label,predicted,images\n3,5\n");
  readConfusion(finished);
  REQUIRE(finished.unread.size() == 1);
  CHECK(finished.unread[0].startsWith(
      kj::str("the accuracy of each class is left out: ", path, ":2 is not the next label")));
}

}  // namespace
}  // namespace runner
