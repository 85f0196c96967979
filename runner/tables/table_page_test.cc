#include "runner/tables/table_page.h"

#include <doctest/doctest.h>
#include <kj/debug.h>

#include "runner/testing/test_run.h"
#include "tests/text.h"

namespace runner {
namespace {

using tests::contains;

PublishedFigures published(double accuracy) {
  PublishedFigures figures;
  figures.validationAccuracy = accuracy;
  return figures;
}

constexpr kj::StringPtr CLASSIC =
    "| epoch | train-accuracy | valid-accuracy | time |\n"
    "| --- | --- | --- | --- |\n"
    "|  1 | 0.250000 | 0.900000 | 2.0 |\n"_kj;

TEST_CASE("tableMarkdown: a single run has the classic table, then the published figures") {
  auto one = kj::arr(testRun("x/1", 0.9));
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

TEST_CASE("tableMarkdown: says if the last validation has more views than those before") {
  auto one = kj::arr(testRun("x/1", 0.9));
  auto epochs = kj::heapArray<EpochRecord>(2);
  for (auto& epoch: epochs) epoch.validationViews = 1;
  epochs[1].validationViews = 6;
  one[0].record.epochRecords = kj::mv(epochs);
  CHECK(
      tableMarkdown(one) ==
      kj::str(CLASSIC, "\nThe last validation uses 6 views of each image, earlier ones use 1.\n"));
  one[0].record.epochRecords[0].validationViews = 6;
  CHECK(tableMarkdown(one) == CLASSIC);
}

TEST_CASE("tableMarkdown: several runs have one row each, and failures their reason") {
  auto runs = kj::heapArrayBuilder<ReportedRun>(2);
  runs.add(testRun("lr=0.1", 0.9));
  auto failed = testRun("lr=9", 0.1);
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

TEST_CASE("tableMarkdown: thins a table by steps, and a run without a table has its state") {
  auto one = kj::arr(testRun("x/1", 0.9));
  auto rows = kj::heapArray<StepRow>(100);
  for (uint i = 0; i < 100; i++) rows[i].step = i + 1;
  one[0].table = RunTable(StepTable{kj::mv(rows)});
  auto lines = [](kj::StringPtr text) {
    uint count = 0;
    for (char c: text) count += c == '\n';
    return count;
  };
  CHECK(lines(tableMarkdown(one)) == 102);
  CHECK(lines(tableCsv(one)) == 101);
  CHECK(lines(tableMarkdown(one, 20)) == 24);
  CHECK(tableMarkdown(one, 20).endsWith(
      "| 100 |  |  |  |  |\n\n20 of 100 rows; table.md has all.\n"));
  CHECK(tableForTerminal(one, 80, 20).endsWith("\n 100\n\n20 of 100 rows; table.md has all.\n"));

  auto atTheEnd = kj::heapArray<StepRow>(21);
  atTheEnd.back().end = true;
  one[0].table = RunTable(StepTable{kj::mv(atTheEnd)});
  CHECK(lines(tableMarkdown(one, 20)) == 23);
  CHECK_FALSE(contains(tableMarkdown(one, 20), "table.md has all"));

  one[0].table = nullptr;
  CHECK(tableMarkdown(one).startsWith("| run | epochs done |"));
}

TEST_CASE("tableCsv: a run that failed before its first line has the columns of one that did not") {
  auto one = kj::arr(testRun("x/1", 0.9));
  one[0].record.state = RunRecord::FAILED;
  one[0].table = nullptr;
  CHECK(tableCsv(one) == "epoch,train-accuracy,valid-accuracy,time\n");
  one[0].topK = 5;
  CHECK(tableCsv(one) == "epoch,train-accuracy,valid-accuracy,valid-top-5,time\n");
  one[0].logStyle = &LOG_STYLES[1];
  CHECK(tableCsv(one) == "step,global step,loss,accuracy,s/batch\n");
}

// Two runs with an expectation. `first` and `second` are how they ended.
kj::Array<ReportedRun> sweepOf(RunRecord::State first, RunRecord::State second) {
  auto runs = kj::heapArray<ReportedRun>(2);
  for (size_t i: kj::indices(runs)) {
    runs[i] = testRun(kj::str("a/", i + 1), 0.9);
    runs[i].record.state = i == 0 ? first : second;
    runs[i].resolved = kj::str("[train]\nseed = ", i + 1, "\n");
    runs[i].expectations = kj::heapArray<Expectation>(1);
    if (runs[i].record.state == RunRecord::FINISHED) {
      runs[i].verdicts = kj::arr(Verdict{true, kj::str("yes")});
    }
  }
  tellApart(runs);
  return runs;
}

TEST_CASE("tableCsv: the columns of a sweep are the same if one of its runs fails, or all") {
  auto header = [](kj::Array<ReportedRun> runs) {
    auto text = tableCsv(runs);
    return kj::str(text.slice(0, KJ_ASSERT_NONNULL(text.findFirst('\n'))));
  };
  auto expected = header(sweepOf(RunRecord::FINISHED, RunRecord::FINISHED));
  CHECK(expected.endsWith(",state,expected"));
  CHECK(header(sweepOf(RunRecord::FINISHED, RunRecord::FAILED)) == expected);
  CHECK(header(sweepOf(RunRecord::FAILED, RunRecord::FAILED)) == expected);
}

TEST_CASE("tableForTerminal: shows labels and results of the runs of a sweep, aligned") {
  auto runs = sweepOf(RunRecord::FINISHED, RunRecord::FAILED);
  runs[1].record.reason = kj::str("worker 1 closed its connection; its log has the last words");
  CHECK(tableForTerminal(runs, 60) ==
        "run     epochs done  valid-accuracy  state     expected\n"
        "seed=1            1          0.9000  finished  1 of 1\n"
        "seed=2            1          0.9000  failed\n"
        "\n"
        "- seed=2 failed: worker 1 closed its connection; its log has\n"
        "  the last words\n");
  // A wide terminal shows the settings as well.
  CHECK(tableForTerminal(runs, 200).startsWith("run     seed  epochs done  "));
}

TEST_CASE("tableForTerminal: for runs with many settings, names and results come first") {
  auto runs = sweepOf(RunRecord::FINISHED, RunRecord::FINISHED);
  for (size_t i: kj::indices(runs)) {
    kj::String text = kj::str("[train]\n");
    for (uint key = 0; key < 40; key++) text = kj::str(text, "setting_", key, " = ", i, "\n");
    runs[i].resolved = kj::mv(text);
    runs[i].label = kj::str("mnist/", i + 1);
  }
  tellApart(runs);
  REQUIRE(runs[0].settings.size() == 40);
  CHECK(tableForTerminal(runs, 80) ==
        "run      epochs done  train-accuracy  valid-accuracy  state     expected\n"
        "mnist/1            1          0.2500          0.9000  finished  1 of 1\n"
        "mnist/2            1          0.2500          0.9000  finished  1 of 1\n");
  CHECK(contains(tableForTerminal(runs, 200), "  setting_5  "));
  CHECK(tableMarkdown(runs).startsWith("| run | setting_0 | setting_1 |"));
}

TEST_CASE("tableForTerminal: a single run has its epochs, and as much of its store as fits") {
  auto one = kj::arr(testRun("x/1", 0.9));
  auto& record = one[0].record;
  record.workers = 1;
  record.servers = 1;
  record.links = kj::heapArray<LinkRecord>(1);
  record.links[0] = {0, 0, kj::str("tcp"), 10, 2048, 4096, 0.02, 0.005, 1024, 0};
  auto text = tableForTerminal(one, 60);
  CHECK(text ==
        "epoch  train-accuracy  valid-accuracy  time\n"
        "    1        0.250000        0.900000   2.0\n"
        "\nStore:\n\n"
        "role      pushed   pulled   round trip ms  max round trip ms\n"
        "worker 0  2.0 KiB  4.0 KiB           2.00               5.00\n"
        "server 0  2.0 KiB  4.0 KiB           2.00               5.00\n");
  CHECK(contains(tableMarkdown(one), "| transport |"));
}

}  // namespace
}  // namespace runner
