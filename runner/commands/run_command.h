// runner/commands/run_command.h: `runner run`.
#pragma once

#include "runner/commands/course.h"
#include "runner/commands/file_command.h"
#include "runner/launch/launcher.h"
#include "runner/launch/launchers.h"
#include "runner/logs/run_folder.h"
#include "runner/logs/run_lock.h"
#include "runner/system/background.h"

namespace runner {

// Runs the only run of a file, or those of its sweep.
class RunCommand: private FileCommand {
public:
  // The command line must outlive this object.
  explicit RunCommand(CommandLine& commandLine): FileCommand(commandLine) {}

  kj::MainFunc getMain();

private:
  Validity run();
  // Return why an option is wrong for these runs: --trace and --trace-steps, --membership, and
  // --copy-data. Null if it is right, or not given. whyNoTracing() sets the default of
  // --trace-steps.
  kj::Maybe<kj::String> whyNoTracing(const LoadedRuns& all);
  kj::Maybe<kj::String> whyNoMembership(const LoadedRuns& all) const;
  kj::Maybe<kj::String> whyNoCopies(const LoadedRuns& all) const;
  // Returns why this machine cannot start these runs. Null if it can. If the user must hand them
  // over to another system, says how, and ends the process.
  kj::Maybe<kj::String> whyNotStarted(
      const LoadedRuns& all, const kj::Maybe<Submission>& submission) const;
  // Returns why these runs cannot be in the folder of --folder. Null if they can, or if it is not
  // given.
  kj::Maybe<kj::String> whyNotInFolder(const LoadedRuns& all, bool inQueue) const;
  // Returns why these runs cannot wait in the queue of Slurm. Null if they can.
  kj::Maybe<kj::String> whyNotInQueue(const LoadedRuns& all) const;
  // Does what --dry-run asks for.
  Validity printHandOver(const LoadedRuns& all, const kj::Maybe<Submission>& submission) const;
  // Makes the data of the runs available, and warns of settings that are hardly intended. Returns
  // why --trace or --trace-steps is wrong for the runs. Null if both are right, or not given.
  kj::Maybe<kj::String> prepare(LoadedRuns& all);
  // Prepares the only run, runs it in the folder of --folder, and ends the process. Returns only if
  // prepare() finds something wrong, with its sentence.
  kj::String runInGivenFolder(LoadedRuns& all);
  // Returns the folder of the run, or of the whole sweep. Clears options.resumes if there is no run
  // to continue. Otherwise see folderToResume().
  RunFolder chooseFolder(LoadedRuns& all);
  // Submits the run to Slurm and follows it: see runInQueue().
  [[noreturn]] void submit(const LoadedExperiment& loaded, const RunFolder& folder, Course& course);
  // Throws if another command has submitted the resumed run since run() found no job of it.
  void refuseQueuedSince(const RunFolder& folder, Course& course) const;
  // Returns the lock of the folder. Null if another process works on the sweep there. Throws if
  // another process works on the run, or has submitted it. With `background`, also detaches this
  // process from the terminal. `resolved` is the experiment of a new run, or empty.
  kj::Maybe<RunLock> takeLock(const RunFolder& folder, bool isOfSweep, kj::StringPtr resolved,
      kj::Maybe<Background>& background, Course& course) const;
  // Returns the folder of the run that --resume continues. Null if none exists. Calls
  // endIfFinished(). If the run had another number of workers before, changes `all` to the
  // experiment of the continued run.
  kj::Maybe<RunFolder> folderToResume(LoadedRuns& all);
  // Shows the result of the run in `folder` and ends the process, if the run has finished and its
  // weights are still there.
  void endIfFinished(const LoadedExperiment& loaded, const RunFolder& folder);
  // Warns of settings that are allowed but hardly intended. Prints each warning once.
  void warnOf(const LoadedRuns& all);

  static constexpr kj::StringPtr RUNS = "runs"_kj;

  kj::String runs = kj::str(RUNS);
  kj::String folderPath;  // empty: a new folder below `runs`
  bool detach = false;
  bool dryRun = false;
  kj::String tracePath;
  kj::String membershipOf;
  kj::String continued;  // a setting: see Continued
  kj::String endedJob;   // the number of the Slurm job that worked on the resumed run before
  LaunchOptions options;
};

}  // namespace runner
