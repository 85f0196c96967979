#include "runner/commands/run_results.h"

#include <unistd.h>

#include "runner/report/report.h"
#include "runner/system/reason.h"
#include "runner/system/terminal.h"
#include "runner/tables/run_tables.h"
#include "runner/tables/table_page.h"
#include "runner/text/numbers.h"

namespace runner {

namespace {

kj::Array<ReportedRun> readRun(kj::StringPtr folder, kj::StringPtr name) {
  return judged(kj::arr(readReportedRun(folder, labelOf(folder, name))));
}

}  // namespace

kj::String openingOf(
    const Experiment& experiment, const ModelFacts& facts, const RunFolder& folder) {
  return kj::str("run ", folder.path, ": ", experiment.cluster.roles(), ", ",
      counted(experiment.globalBatchSize(), "image"), " per step, ",
      counted(facts.steps(experiment), "step"));
}

void reportBrokenRun(const RunFolder& folder, kj::StringPtr name) {
  auto report = [&]() {
    auto run = readRun(folder.path, name);
    writeReport(folder.path, run[0].label, run);
  };
  KJ_IF_MAYBE(e, kj::runCatchingExceptions(report)) {
    if (::access(folder.path.cStr(), F_OK) != 0) return;
    tell(kj::str("warning: the run has no tables and no report: ", reasonOf(*e)));
  }
}

ExitCode reportRun(const RunFolder& folder, kj::StringPtr name, kj::StringPtr weightsSha256,
    uint classes, const SingleRunView& view) {
  auto run = readRun(folder.path, name);
  auto unwritten =
      kj::runCatchingExceptions([&]() { writeReport(folder.path, run[0].label, run); });
  if (view.linesLeftOut() > 0) {
    auto more = kj::str(counted(view.linesLeftOut(), "more line"), " on single steps: see ");
    print(kj::str(withPath(STDOUT_FILENO, more, folder.log()), "\n"));
  }
  printTables(run);
  if (unwritten == nullptr) printWhereTablesAre(folder.path);
  KJ_IF_MAYBE(hint, readerHint(run[0].record)) tell(*hint);
  KJ_IF_MAYBE(hint, lossHint(run[0].record, classes)) tell(*hint);
  printWeights(weightsSha256, folder.path);
  KJ_IF_MAYBE(e, unwritten) kj::throwFatalException(kj::mv(*e));
  return codeOf(run);
}

kj::String labelOf(kj::StringPtr folder, kj::StringPtr name) {
  KJ_IF_MAYBE(slash, folder.findLast('/')) folder = folder.slice(*slash + 1);
  // Without events, the run's name is not known.
  return name.size() == 0 ? kj::str(folder) : kj::str(name, "/", folder);
}

kj::Array<ReportedRun> judged(
    kj::Array<ReportedRun> runs, void (*judge)(kj::ArrayPtr<ReportedRun>)) {
  if (runs.size() == 1) {
    readTable(runs[0]);
    readConfusion(runs[0]);
  }
  tellApart(runs);
  judge(runs);
  for (auto& run: runs) {
    for (auto& each: run.unread) tell(kj::str("warning: ", run.record.folder, ": ", each));
  }
  return runs;
}

void printTables(kj::ArrayPtr<const ReportedRun> runs) {
  KJ_IF_MAYBE(columns, terminalColumns(STDOUT_FILENO)) {
    print(tableForTerminal(runs, *columns, STEP_ROWS_MAX));
  } else {
    print(tableMarkdown(runs, STEP_ROWS_MAX));
  }
}

void printWhereTablesAre(kj::StringPtr folder) {
  if (terminalSize(STDOUT_FILENO) == nullptr) return;
  auto line = withPath(STDOUT_FILENO, "All columns: table.md and report.html in ", folder);
  print(kj::str("\n", line, "\n"));
}

void printWeights(kj::StringPtr sha256, kj::StringPtr folder) {
  auto weights = kj::str("weights sha256=", sha256, "  ");
  print(kj::str(withPath(STDOUT_FILENO, weights, folder), "\n"));
}

ExitCode codeOf(kj::ArrayPtr<const ReportedRun> runs) {
  auto missed = missedOf(runs);
  for (auto& line: missed) tell(line);
  return missed.size() == 0 ? OK : MISSED;
}

}  // namespace runner
