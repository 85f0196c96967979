#include "runner/run_tables.h"

#include <doctest/doctest.h>

#include "tests/text.h"

namespace runner {
namespace {

using tests::contains;

// A run of one epoch with this accuracy.
ReportedRun run(kj::StringPtr label, double accuracy) {
  ReportedRun result;
  result.label = kj::str(label);
  auto& record = result.record;
  record.state = RunRecord::FINISHED;
  record.machine = {kj::str("A processor"), 2, 24ull << 30};
  record.instructionSet = kj::str("avx2");
  record.version = kj::str("1");
  auto epochs = kj::heapArray<EpochRecord>(1);
  auto& epoch = epochs[0];
  epoch.epoch = 1;
  epoch.step = 10;
  epoch.globalStep = 20;
  epoch.workers = 2;
  epoch.images = 1000;
  epoch.trainLoss = 0.5;
  epoch.trainAccuracy = 0.25;
  epoch.epoch_s = 2;
  epoch.images_per_s = 500;
  epoch.verbs = {0.01, 0.02, 0.03, 0.04, 0.05};
  epoch.pushed_bytes = 1 << 20;
  epoch.pulled_bytes = 1 << 20;
  epoch.learningRate = 0.1;
  epoch.validationLoss = 0.75;
  epoch.validationAccuracy = accuracy;
  record.epochRecords = kj::mv(epochs);
  auto rows = kj::heapArray<ResultRow>(1);
  rows[0] = ResultRow{1, kj::arr(MetricFigures{0.25, accuracy}), 2.0};
  result.logTable = LogTable(ResultTable{kj::mv(rows), nullptr});
  return result;
}

PublishedFigures published(double accuracy) {
  PublishedFigures figures;
  figures.validationAccuracy = accuracy;
  return figures;
}

constexpr kj::StringPtr CLASSIC =
    "| epoch | train-accuracy | valid-accuracy | time |\n"
    "| --- | --- | --- | --- |\n"
    "|  1 | 0.250000 | 0.900000 | 2.0 |\n"_kj;

TEST_CASE("tableMarkdown: a single run has the classic table, then what was published") {
  auto one = kj::arr(run("x/1", 0.9));
  CHECK(tableMarkdown(one) == CLASSIC);
  CHECK(tableCsv(one) == "epoch,train-accuracy,valid-accuracy,time\n1,0.250000,0.900000,2.0\n");

  one[0].published = Published{kj::str("a page"), kj::arr(published(0.95))};
  CHECK(tableMarkdown(one) == kj::str(CLASSIC,
                                  "\nPublished: a page\n\n"
                                  "| at | figure | ours | published | difference |\n"
                                  "| --- | --- | --- | --- | --- |\n"
                                  "| the end | validation accuracy | 0.9000 | 0.9500 | -0.0500 "
                                  "|\n"));
}

TEST_CASE("tableMarkdown: a last validation over more views than those before is told") {
  auto one = kj::arr(run("x/1", 0.9));
  auto epochs = kj::heapArray<EpochRecord>(2);
  for (auto& epoch: epochs) epoch.validationViews = 1;
  epochs[1].validationViews = 6;
  one[0].record.epochRecords = kj::mv(epochs);
  CHECK(tableMarkdown(one) ==
        kj::str(CLASSIC,
            "\nThe last validation is over 6 views of each image, those before are over 1.\n"));
  one[0].record.epochRecords[0].validationViews = 6;
  CHECK(tableMarkdown(one) == CLASSIC);
}

TEST_CASE("tableMarkdown: several runs have a row each, and failures their reason") {
  auto runs = kj::heapArrayBuilder<ReportedRun>(2);
  runs.add(run("lr=0.1", 0.9));
  auto failed = run("lr=9", 0.1);
  failed.record.state = RunRecord::FAILED;
  failed.record.reason = kj::str("the loss is nan");
  failed.record.epochRecords = nullptr;
  runs.add(kj::mv(failed));
  auto all = runs.finish();
  all[0].verdicts = kj::arr(Verdict{true, kj::str("yes")}, Verdict{false, kj::str("no")});
  CHECK(
      tableMarkdown(all) ==
      "| run | epochs done | train-accuracy | valid-accuracy | train-loss | valid-loss | s/epoch | "
      "images/s | state | expected |\n"
      "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n"
      "| lr=0.1 | 1 | 0.250000 | 0.900000 | 0.500000 | 0.750000 | 2.0 | 500 | finished | 1 of 2 "
      "|\n"
      "| lr=9 | 0 |  |  |  |  |  |  | failed |  |\n"
      "\n- lr=9 failed: the loss is nan\n");
}

TEST_CASE(
    "resultsTable: what runs were set to has columns, in place of names where it tells them") {
  auto runs = kj::heapArray<ReportedRun>(2);
  runs[0] = run("a", 0.9);
  runs[1] = run("b", 0.8);
  runs[0].resolved = kj::str("[train]\nseed = 1\nepochs = 3\n");
  runs[1].resolved = kj::str("[train]\nseed = 2\nepochs = 3\n");
  tellApart(runs);
  CHECK(runs[1].label == "seed=2");
  auto table = formatTable(resultsTable(runs, 1), TableFormat::CSV);
  CHECK(table.startsWith("seed,epochs done,train-accuracy,"));
  CHECK(contains(table, "\n2,1,0.2,0.8,"));

  // Without it in one, or twice the same, names are needed.
  runs[1].resolved = kj::str(runs[0].resolved);
  runs[1].label = kj::str("b");
  runs[0].label = kj::str("a");
  tellApart(runs);
  CHECK(formatTable(resultsTable(runs, 1), TableFormat::CSV).startsWith("run,epochs done,"));
}

TEST_CASE("tableMarkdown: a table by steps may be thinned, without one a run has its state") {
  auto one = kj::arr(run("x/1", 0.9));
  auto rows = kj::heapArray<StepRow>(100);
  for (uint i = 0; i < 100; i++) rows[i].step = i + 1;
  one[0].logTable = LogTable(StepTable{kj::mv(rows)});
  auto lines = [](kj::StringPtr text) {
    uint count = 0;
    for (char c: text) count += c == '\n';
    return count;
  };
  CHECK(lines(tableMarkdown(one)) == 102);
  CHECK(lines(tableCsv(one)) == 101);
  CHECK(lines(tableMarkdown(one, 20)) <= 24);

  one[0].logTable = nullptr;
  CHECK(tableMarkdown(one).startsWith("| run | epochs done |"));
}

TEST_CASE("validationsTable: one row a validated epoch") {
  CHECK(formatTable(validationsTable(run("x/1", 0.9).record), TableFormat::CSV) ==
        "epoch,global step,validation loss,validation accuracy\n1,20,0.7500,0.9000\n");
}

TEST_CASE("machineTable: one row if all runs were on one machine, else one each") {
  auto runs = kj::heapArrayBuilder<ReportedRun>(2);
  runs.add(run("a", 0.9));
  runs.add(run("b", 0.9));
  auto all = runs.finish();
  CHECK(formatTable(machineTable(all), TableFormat::CSV) ==
        "CPU,cores,memory,instruction set,program\nA processor,2,24.0 GiB,avx2,1\n");
  all[1].record.instructionSet = kj::str("avx512");
  CHECK(machineTable(all).rows.size() == 2);
}

TEST_CASE("stepTimesTable: the five verbs in ms a step, and the traffic") {
  auto one = kj::arr(run("x/1", 0.9));
  CHECK(formatTable(stepTimesTable(one), TableFormat::CSV) ==
        "read,forward,backward,push,pull,ms a step,pushed,pulled,a step and worker\n"
        "1.00,2.00,3.00,4.00,5.00,15.00,1.0 MiB,1.0 MiB,102.4 KiB\n");
}

}  // namespace
}  // namespace runner
