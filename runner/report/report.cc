#include "runner/report/report.h"

#include <kj/debug.h>
#include <kj/vector.h>
#include <string.h>

#include <cmath>

#include "runner/experiment/shown_experiment.h"
#include "runner/report/class_report.h"
#include "runner/report/report_charts.h"
#include "runner/report/report_style.h"
#include "runner/system/files.h"
#include "runner/tables/run_tables.h"
#include "runner/tables/store_table.h"
#include "runner/tables/table_page.h"
#include "runner/text/html.h"
#include "runner/text/numbers.h"

namespace runner {

namespace {

using Runs = kj::ArrayPtr<const ReportedRun>;

// Decimals of accuracies and losses on the page.
constexpr uint DECIMALS = 4;

// Longer tables of published figures are folded.
constexpr size_t PUBLISHED_ROWS_MAX = 24;

kj::String runTime(double seconds) {
  return seconds < 120 ? kj::str(figureText(seconds, 1), " s") : durationText(seconds);
}

kj::String expectationsWords(Runs runs) {
  Met sum;
  for (auto& run: runs) {
    auto met = metOf(run);
    sum.met += met.met;
    sum.all += met.all;
  }
  return sum.all == 0 ? kj::str() : kj::str("; expectations met: ", sum.met, " of ", sum.all);
}

kj::String verdictOfOne(const ReportedRun& run) {
  auto& record = run.record;
  kj::Vector<kj::String> parts;
  parts.add(kj::str(stateWord(record.state)));
  if (record.reason.size() > 0) parts.add(kj::str(": ", record.reason));
  if (record.state == RunRecord::FINISHED) parts.add(kj::str(" in ", runTime(record.run_s)));
  KJ_IF_MAYBE(accuracy, finalAccuracy(record)) {
    auto epochs = record.epochRecords.size();
    parts.add(kj::str("; validation accuracy ", figureText(*accuracy, DECIMALS), " after ", epochs,
        epochs == 1 ? " epoch" : " epochs"));
  }
  return kj::strArray(parts, "");
}

kj::String section(kj::StringPtr heading, kj::String content) {
  if (content.size() == 0) return nullptr;
  return kj::str("<section>\n<h2>", heading, "</h2>\n", content, "</section>\n");
}

// Returns `content` unchanged if the run is the only one.
kj::String foldedIn(Runs runs, const ReportedRun& run, kj::String content) {
  if (runs.size() == 1) return content;
  return kj::str("<details><summary>", escaped(run.label), "</summary>\n", content, "</details>\n");
}

kj::String results(Runs runs) {
  kj::Vector<kj::String> parts;
  parts.add(htmlOf(resultsTable(runs, DECIMALS)));
  for (auto& run: runs) {
    if (runs.size() == 1 || run.record.reason.size() == 0) continue;
    parts.add(kj::str("<p><span class=\"bad\">", stateWord(run.record.state), "</span> ",
        escaped(run.label), ": ", escaped(run.record.reason), "</p>\n"));
  }
  for (auto& run: runs) {
    auto which = runs.size() == 1 ? kj::str() : kj::str(escaped(run.label), ": ");
    for (auto& each: run.unread) parts.add(kj::str("<p>", which, escaped(each), "</p>\n"));
  }
  auto published = publishedTable(runs);
  if (published.rows.size() > 0) {
    auto source = kj::str("Compared with what was published: <span class=\"quiet\">",
        escaped(kj::strArray(sourcesOf(runs), "; ")), "</span>");
    bool fold = published.rows.size() > PUBLISHED_ROWS_MAX;
    parts.add(kj::str(fold ? "<details><summary>" : "<p>", source, fold ? "</summary>" : "</p>",
        "\n", htmlOf(published), fold ? "</details>\n" : ""));
  }
  return kj::strArray(parts, "");
}

// For a single run, all verdicts. For several runs, only those that were missed; the table counts
// the others.
kj::String expectations(Runs runs) {
  kj::Vector<kj::String> lines;
  bool single = runs.size() == 1;
  for (auto& run: runs) {
    for (auto& verdict: run.verdicts) {
      if (!single && verdict.met) continue;
      lines.add(kj::str("<li><span class=\"", verdict.met ? "good\">met" : "bad\">missed",
          "</span> ", single ? kj::str() : kj::str(escaped(run.label), ": "),
          escaped(verdict.sentence), "</li>\n"));
    }
  }
  if (lines.empty()) return nullptr;
  return kj::str("<ul>\n", kj::strArray(lines, ""), "</ul>\n");
}

kj::String curves(Runs runs) {
  auto charts = chartsOf(runs);
  if (charts.size() == 0) return nullptr;
  kj::Vector<kj::String> parts;
  bool single = runs.size() == 1;
  if (!single) {
    // One legend serves all charts, because a run looks the same in each of them.
    kj::Vector<Series> looks;
    for (uint i: kj::indices(runs)) looks.add(Series{kj::str(runs[i].label), nullptr, i});
    parts.add(drawLegend(looks));
    if (sourcesOf(runs).size() > 0) {
      parts.add(kj::str("<p class=\"quiet\">Hollow marks show published figures.</p>\n"));
    }
  }
  parts.add(kj::str("<div class=\"charts\">\n"));
  for (auto& chart: charts) {
    bool legend = single && chart.series.size() > 1;
    parts.add(kj::str("<figure><figcaption>", escaped(chart.title), "</figcaption>\n",
        drawChart(chart), legend ? drawLegend(chart.series) : kj::str(), "</figure>\n"));
  }
  parts.add(kj::str("</div>\n"));
  return kj::strArray(parts, "");
}

// The accuracy of each class of a single run.
kj::String classes(Runs runs) {
  return runs.size() == 1 ? classReport(runs[0].confusion, runs[0].classNames) : kj::String();
}

kj::String stepTimes(Runs runs) {
  kj::StringPtr verbs[] = {"read"_kj, "forward"_kj, "backward"_kj, "push"_kj, "pull"_kj};
  kj::Vector<Bar> bars;
  bool leavesFirstOut = false;
  for (auto& run: runs) {
    KJ_IF_MAYBE(mean, meanStep(run.record)) {
      leavesFirstOut = leavesFirstOut || run.record.epochRecords.size() > 1;
      bars.add(Bar{
          kj::str(run.label), kj::arr(mean->read_s * 1e3, mean->forward_s * 1e3,
                                  mean->backward_s * 1e3, mean->push_s * 1e3, mean->pull_s * 1e3)});
    }
  }
  if (bars.empty()) return nullptr;
  return kj::str("<p class=\"quiet\">The time of a worker's compute thread, averaged over workers",
      leavesFirstOut ? " and epochs, without the first epoch" : "",
      ". Left to right: read, forward, backward, push, pull.</p>\n", drawBars(bars, verbs, "ms"),
      htmlOf(stepTimesTable(runs)));
}

// The traffic of each run's store, folded if there are several runs.
kj::String stores(Runs runs) {
  kj::Vector<kj::String> parts;
  for (auto& run: runs) {
    auto table = storeTable(run.record);
    if (table.rows.size() > 0) parts.add(foldedIn(runs, run, htmlOf(table)));
  }
  return kj::strArray(parts, "");
}

// Returns the steps of a run if its table has steps, else its epochs.
kj::String progressOf(const ReportedRun& run) {
  auto& record = run.record;
  auto note = viewsNote(record);
  if (note.size() > 0) note = kj::str("<p class=\"quiet\">", note, "</p>\n");
  for (auto& resize: resizeNotes(record)) {
    note = kj::str(note, "<p class=\"quiet\">", escaped(resize), "</p>\n");
  }
  KJ_IF_MAYBE(table, run.table) {
    if (table->is<StepTable>()) {
      auto steps = textOf(thinned(table->get<StepTable>(), STEP_ROWS_MAX));
      return kj::str(htmlOf(steps), htmlOf(validationsTable(run)), note);
    }
  }
  return record.epochRecords.size() > 0 ? kj::str(htmlOf(epochsTable(run)), note) : kj::str();
}

// The progress of each run, folded if there are several runs.
kj::String progress(Runs runs) {
  kj::Vector<kj::String> parts;
  for (auto& run: runs) {
    auto tables = progressOf(run);
    if (tables.size() == 0) continue;
    parts.add(foldedIn(runs, run, kj::mv(tables)));
  }
  return kj::strArray(parts, "");
}

kj::String experiments(Runs runs) {
  kj::Vector<kj::String> parts;
  for (auto& run: runs) {
    if (run.resolved.size() == 0) continue;
    auto summary = runs.size() == 1 ? kj::str("experiment.toml") : escaped(run.label);
    parts.add(kj::str("<details><summary>", summary, "</summary>\n<pre>",
        escaped(withoutSecrets(run.resolved)), "</pre></details>\n"));
  }
  return kj::strArray(parts, "");
}

}  // namespace

kj::String verdictOf(Runs runs) {
  auto expected = expectationsWords(runs);
  if (runs.size() == 1) return kj::str(verdictOfOne(runs[0]), expected);
  kj::Vector<kj::String> states;
  for (auto state: {RunRecord::FINISHED, RunRecord::FAILED, RunRecord::INTERRUPTED,
           RunRecord::STOPPED, RunRecord::RUNNING, RunRecord::UNFINISHED}) {
    size_t count = 0;
    for (auto& run: runs) count += run.record.state == state;
    if (count > 0) states.add(kj::str(count, " ", stateWord(state)));
  }
  kj::Maybe<const ReportedRun&> best;
  double most = 0;
  for (auto& run: runs) {
    KJ_IF_MAYBE(accuracy, finalAccuracy(run.record)) {
      if (!std::isfinite(*accuracy) || (best != nullptr && *accuracy <= most)) continue;
      best = run;
      most = *accuracy;
    }
  }
  kj::String found;
  KJ_IF_MAYBE(run, best) {
    found =
        kj::str("; best validation accuracy ", figureText(most, DECIMALS), " (", run->label, ")");
  }
  return kj::str(runs.size(), " runs: ", kj::strArray(states, ", "), found, expected);
}

kj::String reportHtml(kj::StringPtr title, Runs runs) {
  bool good = true;
  for (auto& run: runs) {
    auto met = metOf(run);
    auto state = run.record.state;
    bool ended = state == RunRecord::FINISHED || state == RunRecord::STOPPED;
    good = good && ended && met.met == met.all;
  }
  return kj::str(REPORT_BEGIN,
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n"
      "<title>",
      escaped(title), "</title>\n<style>\n", REPORT_STYLE, "</style>\n</head>\n<body>\n<h1>",
      escaped(title), "</h1>\n<p class=\"verdict\"><span class=\"", good ? "good" : "bad", "\">",
      good ? "●" : "▲", "</span> ", escaped(verdictOf(runs)), "</p>\n",
      section("Results", results(runs)), section("Expected", expectations(runs)),
      section("Curves", curves(runs)), section("Classes", classes(runs)),
      section("Time per step, traffic", stepTimes(runs)), section("Store", stores(runs)),
      section("Progress", progress(runs)), section("Every value used", experiments(runs)),
      section("Machine", runs.size() == 0 ? kj::str() : htmlOf(machineTable(runs))),
      section("Weights", runs.size() == 0 ? kj::str() : htmlOf(weightsTable(runs))),
      "</body>\n</html>\n");
}

kj::Maybe<kj::String> foreignReportIn(kj::StringPtr folder) {
  constexpr size_t HEADER_BYTES_MAX = 64 << 10;
  auto page = kj::str(folder, "/report.html");
  if (isForeignFile(page, REPORT_BEGIN)) return kj::mv(page);
  for (auto name: {"/table.md", "/table.csv"}) {
    auto path = kj::str(folder, name);
    KJ_IF_MAYBE(begin, beginningOf(path, HEADER_BYTES_MAX)) {
      auto header = begin->slice(0, begin->findFirst('\n').orDefault(begin->size()));
      auto text = kj::heapString(header);
      bool isOwn = ::strstr(text.cStr(), "train-accuracy") != nullptr ||
                   ::strstr(text.cStr(), "global step") != nullptr;
      if (!isOwn) return kj::mv(path);
    }
  }
  return nullptr;
}

void writeReport(kj::StringPtr folder, kj::StringPtr title, Runs runs, kj::StringPtr wayOut) {
  writeWhole(kj::str(folder, "/report.html"), reportHtml(title, runs), wayOut);
  writeWhole(kj::str(folder, "/table.md"), tableMarkdown(runs), wayOut);
  writeWhole(kj::str(folder, "/table.csv"), tableCsv(runs), wayOut);
}

}  // namespace runner
