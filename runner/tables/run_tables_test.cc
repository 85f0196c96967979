#include "runner/tables/run_tables.h"

#include <doctest/doctest.h>

#include "runner/testing/test_run.h"
#include "tests/text.h"

namespace runner {
namespace {

using tests::contains;

TEST_CASE(
    "resultsTable: settings have columns, and replace the names if they distinguish the runs") {
  auto runs = kj::heapArray<ReportedRun>(2);
  runs[0] = testRun("a", 0.9);
  runs[1] = testRun("b", 0.8);
  runs[0].resolved = kj::str("[train]\nseed = 1\nepochs = 3\n");
  runs[1].resolved = kj::str("[train]\nseed = 2\nepochs = 3\n");
  tellApart(runs);
  CHECK(runs[1].label == "seed=2");
  auto table = formatTable(resultsTable(runs, 1), TableFormat::CSV);
  CHECK(table.startsWith("seed,epochs done,train-accuracy,"));
  CHECK(contains(table, "\n2,1,0.2,0.8,"));

  // If one run lacks its experiment, or two are equal, the names are needed.
  runs[1].resolved = kj::str(runs[0].resolved);
  runs[1].label = kj::str("b");
  runs[0].label = kj::str("a");
  tellApart(runs);
  CHECK(formatTable(resultsTable(runs, 1), TableFormat::CSV).startsWith("run,epochs done,"));
}

TEST_CASE("validationsTable: one row per validated epoch") {
  CHECK(formatTable(validationsTable(testRun("x/1", 0.9)), TableFormat::CSV) ==
        "epoch,global step,validation loss,validation accuracy\n1,20,0.7500,0.9000\n");
}

// A run of one epoch with this top-k accuracy.
ReportedRun topKRun(kj::StringPtr label, uint k, double accuracy) {
  auto run = testRun(label, 0.9);
  run.topK = k;
  run.record.epochRecords[0].topK = TopKFigure{k, accuracy};
  return run;
}

TEST_CASE("epochsTable and validationsTable: have a column for the top-k accuracy of the run") {
  auto run = topKRun("x/1", 5, 0.95);
  CHECK(formatTable(epochsTable(run), TableFormat::CSV) ==
        "epoch,train-accuracy,valid-accuracy,valid-top-5,train-loss,valid-loss,time "
        "s,images/s,learning rate\n1,0.2500,0.9000,0.9500,0.5000,0.7500,2.0,500,0.1\n");
  CHECK(formatTable(validationsTable(run), TableFormat::CSV) ==
        "epoch,global step,validation loss,validation accuracy,top-5 accuracy\n"
        "1,20,0.7500,0.9000,0.9500\n");
}

TEST_CASE("resultsTable: each top_k of the runs has a column") {
  auto runs = kj::heapArrayBuilder<ReportedRun>(3);
  runs.add(topKRun("a", 5, 0.95));
  runs.add(testRun("b", 0.9));
  runs.add(topKRun("c", 2, 0.92));
  auto text = formatTable(resultsTable(runs, 2), TableFormat::CSV);
  CHECK(text.startsWith(
      "run,epochs done,train-accuracy,valid-accuracy,valid-top-2,valid-top-5,train-loss,"));
  CHECK(contains(text, "\na,1,0.25,0.90,,0.95,"));
  CHECK(contains(text, "\nb,1,0.25,0.90,,,"));
  CHECK(contains(text, "\nc,1,0.25,0.90,0.92,,"));
}

TEST_CASE("machineTable: one row if all runs were on one machine, else one row per run") {
  auto runs = kj::heapArrayBuilder<ReportedRun>(2);
  runs.add(testRun("a", 0.9));
  runs.add(testRun("b", 0.9));
  auto all = runs.finish();
  CHECK(formatTable(machineTable(all), TableFormat::CSV) ==
        "CPU,cores,memory,instruction set,program\nA processor,2,24.0 GiB,avx2,1\n");
  all[1].record.instructionSet = kj::str("avx512");
  CHECK(machineTable(all).rows.size() == 2);
}

TEST_CASE("stepTimesTable: has the five verbs in ms per step, and the traffic") {
  auto one = kj::arr(testRun("x/1", 0.9));
  // Worker 1 has joined later.
  one[0].record.waits = kj::arr(WaitRecord{0, 10}, WaitRecord{1, 6});
  auto links = kj::heapArray<LinkRecord>(2);
  for (uint worker = 0; worker < 2; worker++) {
    links[worker].worker = worker;
    links[worker].pushed_bytes = links[worker].pulled_bytes = 4096 * (worker == 0 ? 10 : 6);
  }
  one[0].record.links = kj::mv(links);
  CHECK(formatTable(stepTimesTable(one), TableFormat::CSV) ==
        "read,forward,backward,push,pull,ms per step,% read,pushed,pulled,per step and "
        "worker\n1.00,2.00,3.00,4.00,5.00,15.00,7,64.0 KiB,64.0 KiB,8.0 KiB\n");
}

}  // namespace
}  // namespace runner
