#include "runner/commands/sweep_run.h"

#include "runner/commands/run_results.h"
#include "runner/launch/launchers.h"
#include "runner/report/report.h"
#include "runner/roles/instruction_set_choice.h"
#include "runner/sweep/sweep_array.h"
#include "runner/sweep/sweep_launch.h"
#include "runner/system/reason.h"
#include "runner/system/terminal.h"
#include "runner/tables/reported_run.h"
#include "runner/text/numbers.h"

namespace runner {

namespace {

kj::Array<RunRecord> launched(const LoadedRuns& all, kj::StringPtr runs, LaunchOptions options,
    Course& course, CommandLine& commandLine) {
  SweepLaunch sweep(all, runs, course.io, options);
  kj::Array<RunRecord> records;
  auto ended = sweep.run().then([&records](kj::Array<RunRecord>&& all) { records = kj::mv(all); });
  kj::Function<kj::Promise<void>()> save = [&]() { return sweep.save(); };
  if (!course.endsUninterrupted(
          kj::mv(ended), [&](kj::StringPtr reason) { sweep.interrupt(reason); }, kj::mv(save))) {
    sweep.clear();
    auto& cluster = KJ_ASSERT_NONNULL(all.runs[0].loaded.experiment).cluster;
    tell(kj::str("interrupted; ", saidOfRoles("all processes have ended", cluster),
        ". Run the same command to continue"));
    commandLine.endWith(INTERRUPTED);
  }
  return records;
}

// Does the same for runs that Slurm starts.
kj::Array<RunRecord> submitted(
    const LoadedRuns& all, kj::StringPtr runs, Course& course, CommandLine& commandLine) {
  SweepArray sweep(all, runs, course.io);
  kj::Array<RunRecord> records;
  auto ended = sweep.run().then([&records](kj::Array<RunRecord>&& all) { records = kj::mv(all); });
  if (!course.endsUninterrupted(kj::mv(ended), [](kj::StringPtr) {})) {
    sweep.clear();
    tell("cancelling the jobs of the sweep. Another Ctrl-C does not wait for their end");
    if (course.endsUninterrupted(sweep.cancel(), [](kj::StringPtr) {})) {
      tell("interrupted; all jobs have ended. Run the same command to continue");
    }
    commandLine.endWith(INTERRUPTED);
  }
  return records;
}

}  // namespace

void runSweep(const LoadedRuns& all, kj::StringPtr runs, bool inQueue, LaunchOptions options,
    Course& course, CommandLine& commandLine) {
  auto records = inQueue ? submitted(all, runs, course, commandLine)
                         : launched(all, runs, options, course, commandLine);
  uint failed = 0, elsewhere = 0;
  for (auto& record: records) {
    if (record.state == RunRecord::FAILED) failed++;
    if (record.state == RunRecord::RUNNING) elsewhere++;
  }
  // The instruction set that runs that have not begun will probably have.
  auto known = kj::str(AUTO_INSTRUCTION_SET);
  for (auto& record: records) {
    if (record.instructionSet.size() > 0) known = kj::str(record.instructionSet);
  }
  auto reported = kj::heapArrayBuilder<ReportedRun>(records.size());
  for (size_t i: kj::indices(records)) {
    // The present file judges the run, because a finished run may have an older [expect] and
    // [published] in its folder. But the instruction set is the one that the run had.
    auto& run = all.runs[i];
    auto& own = records[i].instructionSet;
    auto text = withInstructionSet(run.loaded.resolved, own.size() == 0 ? known : own);
    reported.add(
        reportedRun(kj::mv(records[i]), nameOf(run.settings, all.shortKeys), kj::mv(text)));
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
    tell(
        kj::str(elsewhere, " of ", counted(finished.size(), "run"), elsewhere == 1 ? " is" : " are",
            " running elsewhere. The process that ends last writes the tables in ", folder,
            ". `runner table ", folder, "` writes them at any time"));
  }
  // Also prints missed expectations of the runs that finished while others failed.
  auto code = codeOf(finished);
  if (failed == 0) commandLine.endWith(isWritten ? code : RUN_FAILED);
  commandLine.error(kj::str(failed, " of ", counted(finished.size(), "run"),
      " failed. The table says why. The same command runs them again"));
  commandLine.endWith(RUN_FAILED);
}

}  // namespace runner
