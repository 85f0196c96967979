#include "runner/commands/run_command.h"

#include <kj/async-unix.h>
#include <kj/debug.h>
#include <signal.h>
#include <unistd.h>

#include "runner/experiment/model_facts.h"
#include "runner/launch/launch.h"
#include "runner/launch/run_view.h"
#include "runner/logs/run_ending.h"
#include "runner/logs/run_folder.h"
#include "runner/report/report.h"
#include "runner/roles/trace_file.h"
#include "runner/sweep/sweep_launch.h"
#include "runner/system/files.h"
#include "runner/system/interrupts.h"
#include "runner/system/reason.h"
#include "runner/system/terminal.h"
#include "runner/tables/find_runs.h"
#include "runner/tables/run_tables.h"
#include "runner/tables/table_page.h"

namespace runner {

namespace {

// An event loop, and the signals that interrupt what it waits for.
struct Course {
  kj::AsyncIoContext io;
  kj::Array<int> signals;

  // False if a signal comes before `promise` resolves. `interrupted` is then called with the
  // reason, and after that what `promise` stands for is taken down.
  bool endsUninterrupted(kj::Promise<void> promise, kj::Function<void(kj::StringPtr)> interrupted) {
    auto ended = promise.then([]() { return true; });
    for (int signal: signals) {
      auto interrupt = io.unixEventPort.onSignal(signal).then([&interrupted](siginfo_t&& info) {
        interrupted(reasonOfInterrupt(info.si_signo));
        return false;
      });
      // Not only when the other promises are gone.
      ended = ended.exclusiveJoin(interrupt.eagerlyEvaluate(nullptr));
    }
    return ended.wait(io.waitScope);
  }
};

// "fashion_mnist_dist_sync/3".
kj::String labelOf(kj::StringPtr folder, kj::StringPtr name) {
  KJ_IF_MAYBE(slash, folder.findLast('/')) folder = folder.slice(*slash + 1);
  // Without events nobody knows its name.
  return name.size() == 0 ? kj::str(folder) : kj::str(name, "/", folder);
}

// All that can be said of the runs once they are over, judged by `judge`. A single one keeps its
// label. What of them cannot be read is told.
kj::Array<ReportedRun> judged(
    kj::Array<ReportedRun> runs, void (*judge)(kj::ArrayPtr<ReportedRun>) = &judgeAll) {
  if (runs.size() == 1) readLog(runs[0]);
  tellApart(runs);
  judge(runs);
  for (auto& run: runs) {
    for (auto& each: run.unread) tell(kj::str("warning: ", run.record.folder, ": ", each));
  }
  return runs;
}

kj::Array<ReportedRun> readRun(kj::StringPtr folder, kj::StringPtr name) {
  return judged(kj::arr(readReportedRun(folder, labelOf(folder, name))));
}

// Prints the tables: to a terminal what fits its width, else Markdown. A table by steps is thinned.
void printTables(kj::ArrayPtr<const ReportedRun> runs) {
  KJ_IF_MAYBE(columns, terminalColumns(STDOUT_FILENO)) {
    print(tableForTerminal(runs, *columns, STEP_ROWS_MAX));
  } else {
    print(tableMarkdown(runs, STEP_ROWS_MAX));
  }
}

// Tells somebody at a terminal, who may not see every column, where the others are.
void printWhereTablesAre(kj::StringPtr folder) {
  if (terminalSize(STDOUT_FILENO) == nullptr) return;
  auto line = withPath(STDOUT_FILENO, "All columns: table.md and report.html in ", folder);
  print(kj::str("\n", line, "\n"));
}

void printWeights(kj::StringPtr sha256, kj::StringPtr folder) {
  auto weights = kj::str("weights sha256=", sha256, "  ");
  print(kj::str(withPath(STDOUT_FILENO, weights, folder), "\n"));
}

// Exit code of runs that all went well: what was missed is told.
ExitCode codeOf(kj::ArrayPtr<const ReportedRun> runs) {
  auto missed = missedOf(runs);
  for (auto& line: missed) tell(line);
  return missed.size() == 0 ? OK : MISSED;
}

// "alpha/1" of one run, "alpha" of several with that name, else "3 runs: alpha, beta" with each
// name once.
kj::String titleOf(kj::ArrayPtr<const ReportedRun> runs) {
  if (runs.size() == 1) return kj::str(runs[0].label);
  kj::Vector<kj::StringPtr> names;
  for (auto& run: runs) {
    bool known = false;
    for (auto name: names) known = known || name == run.record.name;
    if (!known) names.add(run.record.name);
  }
  if (names.size() == 1) return kj::str(names[0]);
  return kj::str(runs.size(), " runs: ", kj::strArray(names, ", "));
}

}  // namespace

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
    const SingleRunView& view) {
  auto run = readRun(folder.path, name);
  auto unwritten =
      kj::runCatchingExceptions([&]() { writeReport(folder.path, run[0].label, run); });
  if (view.linesLeftOut() > 0) {
    auto more = kj::str(counted(view.linesLeftOut(), "more line"), " on single steps: see ");
    print(kj::str(withPath(STDOUT_FILENO, more, folder.log()), "\n"));
  }
  printTables(run);
  if (unwritten == nullptr) printWhereTablesAre(folder.path);
  printWeights(weightsSha256, folder.path);
  KJ_IF_MAYBE(e, unwritten) kj::throwFatalException(kj::mv(*e));
  return codeOf(run);
}

kj::String openingOf(
    const Experiment& experiment, const ModelFacts& facts, const RunFolder& folder) {
  return kj::str("run ", folder.path, ": ", experiment.cluster.roles(), ", ",
      counted(experiment.globalBatchSize(), "image"), " a step, ",
      counted(facts.steps(experiment), "step"));
}

namespace {

[[noreturn]] void runOne(const LoadedExperiment& loaded, kj::StringPtr runs,
    kj::Maybe<TraceOrder> trace, Course& course, CommandLine& commandLine) {
  auto& experiment = KJ_ASSERT_NONNULL(loaded.experiment);
  ModelFacts facts(experiment);
  auto folder = newRunFolder(runs, experiment.name);
  kj::Maybe<kj::AutoCloseFd> lock;
  // It tells `runner table` that the run goes on: a file system without locks costs only that.
  kj::runCatchingExceptions([&]() { lock = lockOf(folder); });
  writeWhole(folder.experiment(), loaded.resolved);
  SingleRunView view(experiment, facts.epochs(experiment), facts.steps(experiment));
  view.say(openingOf(experiment, facts, folder));

  kj::Maybe<rpc::TraceSteps> traced;
  KJ_IF_MAYBE(order, trace) traced = order->steps;
  Outcome outcome;
  auto ended = launch(loaded, folder, view, course.io, traced).then([&outcome](Outcome&& how) {
    outcome = kj::mv(how);
  });
  kj::StringPtr signal;
  if (!course.endsUninterrupted(kj::mv(ended), [&](kj::StringPtr reason) { signal = reason; })) {
    auto record = [&]() {
      outcome = recordEnding(folder, *experiment.log.style, Ending::INTERRUPTED, signal);
    };
    KJ_IF_MAYBE(e, kj::runCatchingExceptions(record)) {
      view.say(kj::str("warning: the interruption is not recorded: ", reasonOf(*e)));
      outcome = {.interruption = kj::str(signal)};
    }
    if (outcome.interruption == nullptr) {
      view.say(kj::str(signal, " after the run had ended; all processes have ended"));
    }
  }
  if (outcome.interruption != nullptr) {
    view.say("interrupted; all processes have ended");
    reportBrokenRun(folder, experiment.name);
    commandLine.endWith(INTERRUPTED);
  }
  KJ_IF_MAYBE(failure, outcome.failure) {
    view.say(kj::str("error: ", *failure, "; nothing is left running (log: ", folder.log(), ")"));
    reportBrokenRun(folder, experiment.name);
    commandLine.endWith(RUN_FAILED);
  }
  auto& weights = KJ_ASSERT_NONNULL(outcome.weightsSha256, "the run ended without weights");
  auto code = reportRun(folder, experiment.name, weights, view);
  KJ_IF_MAYBE(order, trace) {
    auto join = [&]() { joinTraces(experiment, folder, order->path); };
    KJ_IF_MAYBE(failure, kj::runCatchingExceptions(join)) {
      commandLine.error(kj::str("the run is complete; its trace could not be written: ",
          reasonOf(*failure), "; the roles' files are in ", folder.path));
      commandLine.endWith(RUN_FAILED);
    }
  }
  commandLine.endWith(code);
}

[[noreturn]] void runSweep(
    const LoadedRuns& all, kj::StringPtr runs, Course& course, CommandLine& commandLine) {
  SweepLaunch sweep(all, runs, course.io);
  kj::Array<RunRecord> records;
  auto ended = sweep.run().then([&records](kj::Array<RunRecord>&& all) { records = kj::mv(all); });
  if (!course.endsUninterrupted(
          kj::mv(ended), [&](kj::StringPtr reason) { sweep.interrupt(reason); })) {
    sweep.clear();
    tell("interrupted; all processes have ended. Run the same command to continue");
    commandLine.endWith(INTERRUPTED);
  }
  uint failed = 0, elsewhere = 0;
  for (auto& record: records) {
    if (record.state == RunRecord::FAILED) failed++;
    if (record.state == RunRecord::RUNNING) elsewhere++;
  }
  auto reported = kj::heapArrayBuilder<ReportedRun>(records.size());
  for (size_t i: kj::indices(records)) {
    // By the file at hand: a finished run keeps an older [expect] and [published] in its folder.
    reported.add(reportedRun(kj::mv(records[i]), nameOf(all.runs[i].settings, all.shortKeys),
        kj::str(all.runs[i].loaded.resolved)));
  }
  auto finished = judged(reported.finish());
  auto& name = KJ_ASSERT_NONNULL(all.runs[0].loaded.experiment).name;
  auto folder = kj::str(runs, "/", name);
  printTables(finished);
  for (auto& run: finished) {
    if (run.record.state != RunRecord::FINISHED) continue;
    printWeights(run.record.weightsSha256, run.record.folder);
  }
  bool isWritten = true;
  if (elsewhere == 0) {
    auto write = [&]() { writeReport(folder, name, finished); };
    KJ_IF_MAYBE(e, kj::runCatchingExceptions(write)) {
      isWritten = false;
      commandLine.error(reasonOf(*e));
    } else {
      printWhereTablesAre(folder);
    }
  } else {
    tell(kj::str(elsewhere, " of ", counted(finished.size(), "run"),
        elsewhere == 1 ? " is" : " are", " running elsewhere. The tables in ", folder,
        " are left to the process that ends last; `runner table ", folder,
        "` writes them at any time"));
  }
  if (failed == 0) {
    auto code = codeOf(finished);
    commandLine.endWith(isWritten ? code : RUN_FAILED);
  }
  commandLine.error(kj::str(failed, " of ", counted(finished.size(), "run"),
      " failed: the table says why; the same command tries them again"));
  commandLine.endWith(RUN_FAILED);
}

}  // namespace

void runExperiment(const LoadedRuns& all, kj::StringPtr runs, kj::Maybe<TraceOrder> trace,
    CommandLine& commandLine) {
  auto signals = interrupts();
  for (int signal: signals) kj::UnixEventPort::captureSignal(signal);
  kj::UnixEventPort::captureChildExit();
  Course course{kj::setupAsyncIo(), kj::mv(signals)};
  if (all.sweep == nullptr) runOne(all.runs[0].loaded, runs, trace, course, commandLine);
  runSweep(all, runs, course, commandLine);
}

kj::Array<ReportedRun> readRuns(
    kj::ArrayPtr<const kj::String> named, kj::Vector<kj::String>& errors) {
  kj::Vector<ReportedRun> found;
  auto orLeaveOut = [&](auto&& read) {
    KJ_IF_MAYBE(e, kj::runCatchingExceptions(read)) errors.add(reasonOf(*e));
  };
  for (auto& folder: named) {
    kj::Array<FoundRun> runs;
    orLeaveOut([&]() { runs = findRuns(folder); });
    for (auto& each: runs) {
      // Paths below different folders may be the same.
      auto& label = named.size() > 1 ? each.folder : each.label;
      orLeaveOut([&]() {
        auto run = readReportedRun(each.folder, label);
        RunFolder held{kj::str(each.folder)};
        if (run.record.state == RunRecord::UNFINISHED && isHeld(held)) {
          run.record.state = RunRecord::RUNNING;
          run.record.reason = holderOf(held);
        }
        found.add(kj::mv(run));
      });
    }
  }
  if (found.size() == 1) found[0].label = labelOf(found[0].record.folder, found[0].record.name);
  return found.releaseAsArray();
}

ExitCode showRuns(kj::Array<ReportedRun> read, kj::StringPtr into) {
  auto runs = judged(kj::mv(read), &judgeBySweeps);
  printTables(runs);
  if (into.size() == 0) {
    tell("nothing is written for several RUNS: name a folder with --into DIR");
  } else {
    writeReport(into, titleOf(runs), runs, OTHER_REPORT);
    printWhereTablesAre(into);
  }
  return codeOf(runs);
}

}  // namespace runner
