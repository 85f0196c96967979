#include "runner/report/report.h"

#include <doctest/doctest.h>

#include <cmath>

#include "runner/report/report_charts.h"
#include "tests/text.h"

namespace runner {
namespace {

using tests::contains;

// A run of two epochs that ends with this accuracy and loss.
ReportedRun run(kj::StringPtr label, double accuracy, double loss) {
  ReportedRun result;
  result.label = kj::str(label);
  result.resolved = kj::str("name = \"", label, "\"\n");
  result.record.state = RunRecord::FINISHED;
  result.record.run_s = 3725;
  result.record.workers = 1;
  auto epochs = kj::heapArray<EpochRecord>(2);
  for (uint i = 0; i < 2; i++) {
    epochs[i].epoch = i + 1;
    epochs[i].step = 10 * (i + 1);
    epochs[i].globalStep = 10 * (i + 1);
    epochs[i].workers = 1;
    epochs[i].images = 100;
    epochs[i].trainLoss = loss;
    epochs[i].trainAccuracy = accuracy;
    epochs[i].validationLoss = loss;
    epochs[i].validationAccuracy = accuracy;
    epochs[i].epoch_s = 1;
    epochs[i].verbs = {0.1, 0.2, 0.3, 0.1, 0.1};
  }
  result.record.epochRecords = kj::mv(epochs);
  auto speeds = kj::heapArray<SpeedRecord>(2);
  speeds[0] = SpeedRecord{0, 1, 10, 10, 1.0, 100, loss, accuracy, loss, accuracy};
  speeds[1] = SpeedRecord{0, 2, 20, 20, 2.0, 200, loss, accuracy, loss, accuracy};
  result.record.speeds = kj::mv(speeds);
  return result;
}

kj::Array<ReportedRun> two(ReportedRun a, ReportedRun b) {
  auto result = kj::heapArrayBuilder<ReportedRun>(2);
  result.add(kj::mv(a));
  result.add(kj::mv(b));
  return result.finish();
}

TEST_CASE("verdictOf: one line says what the run achieved") {
  CHECK(verdictOf(kj::arr(run("x", 0.9, 0.1))) ==
        "finished in 1:02:05; validation accuracy 0.9000 after 2 epochs");
  auto runs = two(run("x", 0.9, 0.1), run("y", 0.95, 0.1));
  runs[0].record.state = RunRecord::FAILED;
  runs[1].verdicts = kj::arr(Verdict{true, kj::str("yes")});
  CHECK(verdictOf(runs) ==
        "2 runs: 1 finished, 1 failed; best validation accuracy 0.9500 (y); expectations met: 1 of "
        "1");
}

TEST_CASE("verdictOf: the best of several runs is one that has a figure") {
  CHECK(verdictOf(two(run("x", std::nan(""), 0.1), run("y", 0.5, 0.1))) ==
        "2 runs: 2 finished; best validation accuracy 0.5000 (y)");
  CHECK(verdictOf(two(run("x", std::nan(""), 0.1), run("y", std::nan(""), 0.1))) ==
        "2 runs: 2 finished");
}

TEST_CASE(
    "reportHtml: says that all is well if every run finished or was stopped, and met its "
    "expectation") {
  constexpr kj::StringPtr GOOD = "<p class=\"verdict\"><span class=\"good\">"_kj;
  auto runs = two(run("x", 0.9, 0.1), run("y", 0.9, 0.1));
  CHECK(contains(reportHtml("x", runs), GOOD));
  runs[1].record.state = RunRecord::STOPPED;
  CHECK(contains(reportHtml("x", runs), GOOD));
  for (auto state: {RunRecord::FAILED, RunRecord::INTERRUPTED, RunRecord::UNFINISHED}) {
    runs[1].record.state = state;
    CHECK_FALSE(contains(reportHtml("x", runs), GOOD));
  }
  runs[1].record.state = RunRecord::FINISHED;
  runs[1].verdicts = kj::arr(Verdict{false, kj::str("no")});
  CHECK_FALSE(contains(reportHtml("x", runs), GOOD));
}

TEST_CASE("reportHtml: names what could not be read") {
  auto one = kj::arr(run("x", 0.9, 0.1));
  one[0].unread.add(kj::str("the table of the log is left out: <odd>"));
  CHECK(contains(reportHtml("x", one), "<p>the table of the log is left out: &lt;odd&gt;</p>"));
}

TEST_CASE("reportHtml: a run that logs steps shows some of them, and its validations") {
  auto one = kj::arr(run("x", 0.9, 0.1));
  auto rows = kj::heapArray<StepRow>(100);
  for (uint i = 0; i < 100; i++) rows[i].step = i + 1;
  one[0].table = RunTable(StepTable{kj::mv(rows)});
  auto page = reportHtml("x", one);
  CHECK(contains(page, "<th class=\"n\">step</th>"));
  CHECK(contains(page, "<td class=\"n\">100</td>"));
  CHECK_FALSE(contains(page, "<td class=\"n\">99</td>"));
  CHECK(contains(page, "validation accuracy</th>"));
}

TEST_CASE("reportHtml: the same runs give the same page, and texts are escaped") {
  auto runs = two(run("<a> & \"b\"", 0.9, 0.1), run("c", std::nan(""), std::nan("")));
  auto page = reportHtml("<title>", runs);
  CHECK(page == reportHtml("<title>", runs));
  CHECK(contains(page, "<h1>&lt;title&gt;</h1>"));
  CHECK(contains(page, "&lt;a&gt; &amp; &quot;b&quot;"));
  CHECK_FALSE(contains(page, "<a>"));
  CHECK(contains(page, "<h2>Curves</h2>"));
  CHECK(contains(page, "<h2>Time per step, traffic</h2>"));
}

TEST_CASE("reportHtml: step times say what they are averaged over") {
  auto runs = two(run("a", 0.9, 0.1), run("b", 0.9, 0.1));
  CHECK(contains(reportHtml("x", runs),
      "The time of a worker's compute thread, averaged over workers and epochs, without the first "
      "epoch. "));
  // A run of one epoch has no epoch after the first.
  for (auto& each: runs) {
    each.record.epochRecords = kj::arr(each.record.epochRecords[0]);
  }
  CHECK(contains(
      reportHtml("x", runs), "The time of a worker's compute thread, averaged over workers. "));
}

TEST_CASE("reportHtml: the page fetches nothing and runs no scripts") {
  auto page = reportHtml("x", kj::arr(run("a", 0.9, 0.1)));
  for (auto part: {"http:"_kj, "https:"_kj, "<script"_kj, "<link"_kj, "src="_kj, "url("_kj}) {
    INFO(part.cStr());
    CHECK_FALSE(contains(page, part));
  }
}

TEST_CASE("reportHtml: a run that failed before its first epoch has a page with its reason") {
  ReportedRun failed;
  failed.label = kj::str("x/1");
  failed.record.state = RunRecord::FAILED;
  failed.record.reason = kj::str("worker 0 was killed");
  auto page = reportHtml("x/1", kj::arr(kj::mv(failed)));
  CHECK(contains(page, "failed: worker 0 was killed"));
  CHECK_FALSE(contains(page, "<h2>Curves</h2>"));
}

kj::String titlesOf(kj::ArrayPtr<const ReportedRun> runs) {
  auto titles = KJ_MAP(chart, chartsOf(runs)) {
    return kj::str(chart.title, ": ", chart.series.size(), "; ");
  };
  return kj::strArray(titles, "");
}

TEST_CASE(
    "chartsOf: one run has training and validation in one chart, several runs have two charts") {
  CHECK(titlesOf(kj::arr(run("a", 0.9, 0.1))) == "Accuracy: 2; Loss: 2; Images/s of the job: 1; ");
  CHECK(titlesOf(two(run("a", 0.9, 0.1), run("b", 0.8, 0.2))) ==
        "Validation accuracy: 2; Training accuracy: 2; Validation loss: 2; Training loss: 2; "
        "Images/s of the job: 2; ");
}

TEST_CASE("chartsOf: each top_k has a chart, with a line per run that counts it") {
  auto runs = two(run("a", 0.9, 0.1), run("b", 0.8, 0.2));
  runs[0].topK = 5;
  for (auto& epoch: runs[0].record.epochRecords) epoch.topK = TopKFigure{5, 0.95};
  CHECK(contains(titlesOf(runs), "Training accuracy: 2; Validation top-5 accuracy: 1; "));
  auto charts = chartsOf(runs.slice(0, 1));
  CHECK(charts[1].title == "Validation top-5 accuracy");
  REQUIRE(charts[1].series[0].points.size() == 2);
  CHECK(charts[1].series[0].points[1].x == 2);
  CHECK(charts[1].series[0].points[1].y == 0.95);
}

TEST_CASE("chartsOf: cuts off the loss of a run that diverged, so that the others stay visible") {
  auto charts = chartsOf(two(run("a", 0.9, 0.5), run("b", 0.1, 1e9)));
  CHECK(charts[2].title == "Validation loss (cut off above)");
  CHECK(charts[2].y.atMost == 2);
}

TEST_CASE("chartsOf: adds up the speeds that the current workers report into one point") {
  auto one = kj::arr(run("a", 0.9, 0.5));
  auto speeds = kj::heapArrayBuilder<SpeedRecord>(5);
  for (uint i = 0; i < 4; i++) {
    uint step = 10 * (i / 2 + 1);
    speeds.add(SpeedRecord{
        i % 2, 1, step, step, i / 2 + 1.0 + i % 2 * 0.001, i < 2 ? 100.0 : 200.0, 1, 1, 1, 1, 2});
  }
  // Worker 0 was lost.
  speeds.add(SpeedRecord{1, 1, 30, 30, 3, 300, 1, 1, 1, 1, 1});
  one[0].record.speeds = speeds.finish();
  auto charts = chartsOf(one);
  auto& points = charts.back().series[0].points;
  REQUIRE(points.size() == 3);
  CHECK(points[0].y == 200);
  CHECK(points[1].y == 400);
  CHECK(points[2].y == 300);
}

TEST_CASE("chartsOf: figures published for all runs are shown once") {
  auto runs = two(run("a", 0.9, 0.5), run("b", 0.8, 0.5));
  for (auto& each: runs) {
    PublishedFigures figures;
    figures.validationAccuracy = 0.95;
    each.published = Published{kj::str("a page"), kj::arr(kj::mv(figures))};
  }
  auto charts = chartsOf(runs);
  REQUIRE(charts[0].series.size() == 3);
  CHECK(charts[0].series[1].shape == Series::MARKS);
  CHECK(charts[0].series[1].points[0].x == 2);
}

TEST_CASE("thinned: groups of neighbours become their means") {
  auto points = thinned({{0, 0}, {1, 2}, {2, 4}, {3, 6}}, 2);
  REQUIRE(points.size() == 2);
  CHECK(points[0].x == 0.5);
  CHECK(points[1].y == 5);
  CHECK(thinned(nullptr, 5).size() == 0);
}

}  // namespace
}  // namespace runner
