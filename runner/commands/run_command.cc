#include "runner/commands/run_command.h"

#include <kj/debug.h>
#include <kj/map.h>
#include <unistd.h>

#include "configs/language/failure.h"
#include "configs/language/warning.h"
#include "runner/checkpoints/checkpoints.h"
#include "runner/checkpoints/weights.h"
#include "runner/commands/course.h"
#include "runner/commands/resumed_run.h"
#include "runner/commands/run_data.h"
#include "runner/commands/run_results.h"
#include "runner/commands/slurm_run.h"
#include "runner/commands/sweep_run.h"
#include "runner/commands/update_plan.h"
#include "runner/experiment/devices.h"
#include "runner/experiment/model_facts.h"
#include "runner/launch/launch.h"
#include "runner/launch/run_view.h"
#include "runner/launch/slurm_queue.h"
#include "runner/logs/run_ending.h"
#include "runner/logs/run_folder.h"
#include "runner/logs/run_record.h"
#include "runner/report/report.h"
#include "runner/roles/carry_over.h"
#include "runner/roles/instruction_set_choice.h"
#include "runner/roles/member_plan.h"
#include "runner/roles/trace_file.h"
#include "runner/system/background.h"
#include "runner/system/files.h"
#include "runner/system/output.h"
#include "runner/system/reason.h"
#include "runner/system/slurm_job.h"
#include "runner/system/terminal.h"
#include "runner/system/version.h"

namespace runner {

namespace {

[[noreturn]] void runOne(const LoadedExperiment& loaded, const RunFolder& folder,
    kj::StringPtr tracePath, LaunchOptions options, Course& course, CommandLine& commandLine) {
  auto& experiment = KJ_ASSERT_NONNULL(loaded.experiment);
  ModelFacts facts(experiment);
  writeWhole(folder.experiment(), loaded.resolved);
  forgetSlurmJob(folder);
  SingleRunView view(experiment, facts.epochs(experiment), facts.steps(experiment));
  if (options.resumes) view.noteBefore(folder);
  view.say(openingOf(experiment, facts, folder));

  SaveHook hook;
  options.saveHook = &hook;
  Outcome outcome;
  auto ended = launch(loaded, folder, view, course.io, options).then([&outcome](Outcome&& how) {
    outcome = kj::mv(how);
  });
  kj::StringPtr signal;
  kj::Function<kj::Promise<void>()> save = [&]() { return hook.save(); };
  if (!course.endsUninterrupted(
          kj::mv(ended), [&](kj::StringPtr reason) { signal = reason; }, kj::mv(save))) {
    auto record = [&]() {
      outcome = recordEnding(folder, *experiment.log.style, Ending::INTERRUPTED, signal);
    };
    KJ_IF_MAYBE(e, kj::runCatchingExceptions(record)) {
      view.say(kj::str("warning: the interruption is not recorded: ", reasonOf(*e)));
      outcome = {.interruption = kj::str(signal)};
    }
    if (outcome.interruption == nullptr) {
      view.say(kj::str(signal, " after the run had ended; ",
          saidOfRoles("all processes have ended", experiment.cluster)));
    }
  }
  if (outcome.interruption != nullptr) {
    view.say(kj::str("interrupted; ", saidOfRoles("all processes have ended", experiment.cluster)));
    reportBrokenRun(folder, experiment.name);
    commandLine.endWith(INTERRUPTED);
  }
  KJ_IF_MAYBE(failure, outcome.failure) {
    view.say(kj::str("error: ", *failure, ". ",
        saidOfRoles("Nothing is left running", experiment.cluster), " (log: ", folder.log(), ")"));
    reportBrokenRun(folder, experiment.name);
    commandLine.endWith(RUN_FAILED);
  }
  auto& weights = KJ_ASSERT_NONNULL(outcome.weightsSha256, "the run ended without weights");
  auto code = reportRun(folder, experiment.name, weights, facts.graph.classes, view);
  KJ_IF_MAYBE(hint, precisionHint(experiment, facts.graph)) view.say(kj::str(*hint));
  if (tracePath.size() > 0) {
    auto join = [&]() { joinTraces(experiment, folder, tracePath); };
    KJ_IF_MAYBE(failure, kj::runCatchingExceptions(join)) {
      commandLine.error(kj::str("the run is complete; its trace could not be written: ",
          reasonOf(*failure), "; the roles' files are in ", folder.path));
      commandLine.endWith(RUN_FAILED);
    }
  }
  commandLine.endWith(code);
}

// Returns `record`, of the finished run in `folder`, with its verdicts. Writes the tables and the
// report of the run. A launcher that was killed after the end of the run has not written them, or
// has only written those of an earlier interruption.
kj::Array<ReportedRun> resultOf(
    RunRecord record, const LoadedExperiment& loaded, const RunFolder& folder) {
  auto name = labelOf(folder.path, KJ_ASSERT_NONNULL(loaded.experiment).name);
  auto& level = record.instructionSet;
  auto resolved =
      level.size() == 0 ? kj::str(loaded.resolved) : withInstructionSet(loaded.resolved, level);
  auto reported = kj::heapArrayBuilder<ReportedRun>(1);
  reported.add(reportedRun(kj::mv(record), kj::mv(name), kj::mv(resolved)));
  auto finished = judged(reported.finish());
  auto write = [&]() { writeReport(folder.path, finished[0].label, finished); };
  KJ_IF_MAYBE(e, kj::runCatchingExceptions(write)) {
    tell(kj::str("warning: the tables and the report are not up to date: ", reasonOf(*e)));
  }
  return finished;
}

// Prepares the folder of --folder for the run: empties it, unless the run there can continue.
// Returns whether it continues. If the run has finished there, ends the process. Throws, and
// removes nothing, if the folder has files of somebody else that the run would replace.
bool prepareGivenFolder(
    const HeldRunFolder& held, LoadedExperiment& loaded, bool resumes, CommandLine& commandLine) {
  auto& folder = held.folder;
  refuseOtherFiles(folder, isResolved);
  RunRecord record;
  auto read = [&]() { record = readRecordToResume(folder.path); };
  if (resumes && ::access(folder.events().cStr(), F_OK) == 0) {
    read();
  } else {
    // A run whose later events cannot be read is run again.
    kj::runCatchingExceptions(read);
  }
  KJ_IF_MAYBE(sentence, damageText(record)) tell(*sentence);
  if (record.digest.size() > 0 && record.digest != loaded.digest) {
    configs::fail(folder.path, " has the run of another experiment. Name another folder");
  }
  if (record.state == RunRecord::FINISHED) {
    KJ_IF_MAYBE(why, whyNotWeights(folder.weights(), record.weightsSha256)) {
      tell(kj::str("the run in ", folder.path, " had finished, but ",
          resumes ? "continues: " : "begins again: ", *why));
    } else {
      tell(kj::str("the run in ", folder.path, " has already finished, so nothing was started"));
      commandLine.endWith(codeOf(resultOf(kj::mv(record), loaded, folder)));
    }
  }
  if (resumes && record.digest.size() > 0) {
    requireContinuable(folder, record.digest);
    keepInstructionSet(loaded, record);
    return true;
  }
  held.lock.accept();
  if (resumes) {
    KJ_IF_MAYBE(sentence, setResultsAside(folder)) tell(*sentence);
  }
  held.empty();
  return false;
}

// Runs the runs in `all`, whose data are available, in `folder`, or in folders below `runs`. Log
// lines, tables and the hashes of weights go to stdout. Progress and messages go to stderr. Ends
// the process, because threads of a failed run cannot be joined. `tracePath`, which may be empty,
// and `options.resumes` are only for a single run.
[[noreturn]] void runExperiment(const LoadedRuns& all, kj::StringPtr runs, const RunFolder& folder,
    kj::StringPtr tracePath, bool inQueue, LaunchOptions options, Course& course,
    CommandLine& commandLine) {
  OutputThread outputThread;
  if (all.sweep == nullptr) {
    runOne(all.runs[0].loaded, folder, tracePath, options, course, commandLine);
  }
  runSweep(all, runs, inQueue, options, course, commandLine);
}

// Says that process `pid` continues the run in `folder` in the background, and ends this process.
[[noreturn]] void endDetached(const RunFolder& folder, pid_t pid, CommandLine& commandLine) {
  tell(kj::str("runs in the background, as process ", pid, ". `runner attach ", folder.path,
      "` follows it, and `runner stop ", folder.path, "` ends it"));
  print(kj::str(folder.path, "\n"));
  commandLine.endWith(OK);
}

// Throws that another process works on the run in `folder`.
[[noreturn]] void refuseHeldRun(const RunFolder& folder) {
  refuseHeld(folder, kj::str("end it with `runner stop ", folder.path, "`"));
}

// From now on, the output of this process goes to files in `folder`. Throws if it does not hold the
// lock of the folder. `resolved`, the experiment of a new run, is written first: `runner run
// --resume` must find a run whose folder has been printed. It is empty for other runs.
void enterBackground(const RunFolder& folder, const kj::Maybe<RunLock>& held, bool isOfSweep,
    kj::StringPtr resolved, Background& background) {
  KJ_IF_MAYBE(lock, held) {
    lock->noteBackground();
    if (resolved.size() > 0) writeWhole(folder.experiment(), resolved);
    background.ready(folder.output());
    return;
  }
  if (!isOfSweep) refuseHeldRun(folder);
  configs::fail(holderOf(folder), " works on the sweep in ", folder.path,
      " already. `runner attach ", folder.path, "` follows it, and without --detach this command ",
      "shares its work");
}

}  // namespace

kj::MainFunc RunCommand::getMain() {
  kj::MainBuilder builder(commandLine, VERSION,
      "Runs the experiment in FILE in a new folder RUNS/<name>/<n>, shows its log and progress, "
      "and prints the result table. A sweep has one folder per run, named after the run's "
      "settings, and skips finished runs. Ctrl-C ends it with exit code 130 and leaves no "
      "process.\n"
      "\n"
      "  runner run configs/fashion_mnist_dist_sync.toml\n"
      "  runner run configs/cifar10_local.toml --set train.epochs=2 --runs /tmp/runs\n"
      "  runner run configs/fashion_mnist_dist_sync.toml --sweep data.batch_size=64,128\n"
      "  runner run configs/cifar10_dist_sync.toml --detach\n"
      "  runner run configs/cifar10_dist_sync.toml --resume\n"
      "  runner run configs/cifar10_dist_sync.toml --set cluster.launcher=slurm\n"
      "  runner run x.toml --set cluster.launcher=ssh --copy-data");
  addFileAndSettings(builder);
  return builder
      .addOptionWithArg({"runs"}, folderSetter(runs, "name a folder, e.g. --runs runs"), "DIR",
          "where the folders of runs are (default: runs)")
      .addOptionWithArg({"folder"}, folderSetter(folderPath, "name a folder, e.g. --folder /tmp/x"),
          "DIR",
          "the run's own folder, in place of a new folder in RUNS. If a run in DIR has finished, "
          "the command does nothing. Otherwise the run begins again, or with --resume continues. "
          "For "
          "scripts of batch systems")
      .addOption({"detach"}, flagSetter(detach),
          "import the data, then continue in the background, and print the run's folder: the run "
          "outlives the terminal. See `runner attach`, `runner stop` and `runner ps`")
      .addOption({"copy-data"}, flagSetter(options.copiesData),
          "with launcher ssh: import the data set on this machine only, and copy it to each host "
          "that does not have it yet, into ~/.cache/runner there")
      .addOption({"resume"}, flagSetter(options.resumes),
          "continue the newest run of this experiment from its newest checkpoint. If that run has "
          "finished, only show its result. If all runs have other numbers of workers or servers, "
          "continue the newest of them in a new folder, from its newest checkpoint at the end of "
          "an epoch. If there is no run yet, begin one")
      .addOption({"dry-run"}, flagSetter(dryRun),
          "start nothing. With launcher kubernetes: print the manifest for kubectl. With launcher "
          "slurm: print the script for sbatch")
      .addOptionWithArg({"trace"}, textSetter(tracePath, "name a file, e.g. --trace trace.json"),
          "FILE",
          "write a timeline of what each role did to FILE, for Perfetto (https://ui.perfetto.dev)")
      .addOptionWithArg({"membership"},
          textSetter(membershipOf, "name the folder of a run, e.g. runs/mine/1"), "RUN",
          "repeat the losses and joins of workers of the run in this folder, at the same steps "
          "(dist_sync with cluster.on_loss = \"continue\"). The weights are those of that run")
      .addOptionWithArg({"trace-steps"}, traceStepsSetter(options.trace), "A-B",
          "record only these steps, counted from 0 (default: as many as fit into the buffer)")
      .callAfterParsing(KJ_BIND_METHOD(*this, run))
      .build();
}

Validity RunCommand::run() {
  auto all = loadAll();
  bool isSweep = all.sweep != nullptr;
  if (options.resumes && isSweep) {
    return kj::str(
        "a sweep needs no --resume: it skips what is finished and continues what it has begun");
  }
  KJ_IF_MAYBE(why, whyNoTracing(all)) return kj::mv(*why);
  KJ_IF_MAYBE(why, whyNoMembership(all)) return kj::mv(*why);
  KJ_IF_MAYBE(why, whyNoCopies(all)) return kj::mv(*why);
  auto submission = submissionOf(all.runs[0].loaded);
  if (dryRun) return printHandOver(all, submission);
  KJ_IF_MAYBE(why, whyNotStarted(all, submission)) return kj::mv(*why);
  bool inQueue = submission != nullptr;
  KJ_IF_MAYBE(why, whyNotInFolder(all, inQueue)) return kj::mv(*why);
  options.membershipOf = membershipOf;
  if (folderPath.size() > 0) return runInGivenFolder(all);

  KJ_IF_MAYBE(why, prepare(all)) return kj::mv(*why);
  auto folder = chooseFolder(all);
  if (isSweep) {
    KJ_IF_MAYBE(path, foreignReportIn(folder.path)) {
      return kj::str(*path, " exists, and is not of a report. Choose another folder with --runs, ",
          "or remove it");
    }
  }
  if (options.resumes) {
    endedJob = slurmJobOf(folder).orDefault(nullptr);
    refuseQueued(folder);
    if (membershipOf.size() == 0 && repeatsMembers(folder)) refuseWithoutMembership(folder);
  }
  bool isSubmitted = inQueue && !isSweep;
  kj::Maybe<Background> background;
  if (detach && !isSubmitted) {
    // Only the new process gets here. It needs a new event loop.
    background.emplace([&](pid_t pid) -> int { endDetached(folder, pid, commandLine); });
  }
  Course course;
  if (isSubmitted) submit(all.runs[0].loaded, folder, course);
  bool isNew = !isSweep && !options.resumes;
  auto lock = takeLock(
      folder, isSweep, isNew ? all.runs[0].loaded.resolved.asPtr() : nullptr, background, course);
  // Two processes would submit the same runs, and Slurm itself starts as many as it can.
  bool isShared = isSweep && inQueue && lock == nullptr && isHeld(folder);
  if (isShared) {
    configs::fail(holderOf(folder), " works on the sweep in ", folder.path,
        " already. `runner attach ", folder.path, "` follows it");
  }
  // Another process may have finished the run since.
  if (options.resumes) endIfFinished(all.runs[0].loaded, folder);
  KJ_IF_MAYBE(held, lock) {
    if (membershipOf.size() > 0) held->noteRepeatsMembers();
    held->noteInterrupts();
    // The lock must outlive an exception that ends the command.
    commandLine.atEnd([own = kj::mv(*held)](int code) { own.noteExit(code); });
  }
  runExperiment(all, runs, folder, tracePath, inQueue, options, course, commandLine);
}

kj::Maybe<kj::String> RunCommand::whyNotStarted(
    const LoadedRuns& all, const kj::Maybe<Submission>& submission) const {
  KJ_IF_MAYBE(handedOver, submission) {
    KJ_IF_MAYBE(advice, handedOver->advice) commandLine.exitError(kj::str("error: ", *advice));
    return whyNotInQueue(all);
  }
  auto& cluster = KJ_ASSERT_NONNULL(all.runs[0].loaded.experiment).cluster;
  KJ_IF_MAYBE(why, whyNotFromHere(cluster)) return kj::mv(*why);
  bool isInline = cluster.launcher->word == LauncherKind::INLINE;
  if (detach && isInline && haveGpu(cluster.devices)) {
    return kj::str("--detach cannot be combined with cluster.launcher = \"inline\" and a GPU: the ",
        "driver works only in the process that has looked for GPUs. Choose launcher \"local\"");
  }
  return nullptr;
}

kj::Maybe<kj::String> RunCommand::whyNotInFolder(const LoadedRuns& all, bool inQueue) const {
  if (folderPath.size() == 0) return nullptr;
  if (detach || inQueue || all.sweep != nullptr) {
    return kj::str("--folder cannot be combined with a sweep, with --detach, or with a run that ",
        "waits in the queue of Slurm");
  }
  if (runs != RUNS) {
    return kj::str("--folder names the run's own folder, so --runs has no effect: leave one out");
  }
  return nullptr;
}

kj::Maybe<kj::String> RunCommand::prepare(LoadedRuns& all) {
  prepareData(all, path(), commandLine, all.sweep != nullptr);
  KJ_IF_MAYBE(steps, options.trace) {
    auto& experiment = KJ_ASSERT_NONNULL(all.runs[0].loaded.experiment);
    auto made = ModelFacts(experiment).steps(experiment);
    KJ_IF_MAYBE(why, whyNoTrace(*steps, made, tracePath, "--trace FILE")) return kj::mv(*why);
    if (isForeignFile(tracePath, TRACE_BEGIN)) {
      return kj::str(
          tracePath, " exists, and is not a trace. Choose another file with --trace, or remove it");
    }
  }
  warnOf(all);
  return nullptr;
}

kj::String RunCommand::runInGivenFolder(LoadedRuns& all) {
  nameFolderOption();
  RunFolder folder{kj::str(folderPath)};
  // The number of this process's own job may not be noted yet.
  if (ownSlurmJob() != nullptr) awaitSubmission(folder);
  auto job = slurmJobOf(folder).orDefault(nullptr);
  refuseQueued(folder);
  bool awaited = isAwaited(folder);
  bool repeats = membershipOf.size() > 0 || (options.resumes && repeatsMembers(folder));
  auto own = kj::heap<HeldRunFolder>(kj::mv(folder));
  auto& held = *own;
  commandLine.atEnd([own = kj::mv(own)](int code) { own->lock.noteExit(code); });
  held.lock.mayRefuse(awaited);
  // Another command may have submitted the run meanwhile.
  if (slurmJobOf(held.folder).orDefault(nullptr) != job) refuseQueued(held.folder);
  // Signals are handled here until an event loop captures them, because importing the data takes
  // long.
  held.lock.noteInterrupts();
  KJ_IF_MAYBE(why, prepare(all)) return kj::mv(*why);
  options.resumes = prepareGivenFolder(held, all.runs[0].loaded, options.resumes, commandLine);
  if (repeats && membershipOf.size() == 0) refuseWithoutMembership(held.folder);
  held.lock.accept();
  if (repeats) held.lock.noteRepeatsMembers();
  Course course;
  runExperiment(all, runs, held.folder, tracePath, false, options, course, commandLine);
}

RunFolder RunCommand::chooseFolder(LoadedRuns& all) {
  if (options.resumes) {
    KJ_IF_MAYBE(known, folderToResume(all)) return kj::mv(*known);
    options.resumes = false;
  }
  auto& name = KJ_ASSERT_NONNULL(all.runs[0].loaded.experiment).name;
  return all.sweep == nullptr ? newRunFolder(runs, name) : RunFolder{kj::str(runs, "/", name)};
}

void RunCommand::refuseQueuedSince(const RunFolder& folder, Course& course) const {
  if (slurmJobOf(folder).orDefault(nullptr) != endedJob) refuseQueued(folder, course.io);
}

void RunCommand::submit(const LoadedExperiment& loaded, const RunFolder& folder, Course& course) {
  KJ_IF_MAYBE(right, lockSubmission(folder)) {
    if (options.resumes) refuseQueuedSince(folder, course);
    // Taking the lock also removes the record of how the run ended before. This is right, because
    // the run waits in the queue from now on.
    auto lock = lockIfPossible(folder);
    if (lock == nullptr) refuseHeldRun(folder);
    forgetSlurmJob(folder);
    // Without locks, the job would not wait in awaitSubmission(), and would find the run locked.
    if (*right == nullptr) lock = nullptr;
    OutputThread outputThread;
    runInQueue(loaded, folder, {kj::mv(lock), kj::mv(*right)}, detach, course, commandLine);
  }
  configs::fail("another process submits the run in ", folder.path, " to Slurm");
}

kj::Maybe<RunLock> RunCommand::takeLock(const RunFolder& folder, bool isOfSweep,
    kj::StringPtr resolved, kj::Maybe<Background>& background, Course& course) const {
  // The lock shows other commands that the run is in progress. Several processes may work on a
  // sweep: the first one has its lock. They need a file system with locks.
  auto lock = isOfSweep ? lockOf(folder) : lockIfPossible(folder);
  if (options.resumes) {
    // Two processes would write the same files.
    if (lock == nullptr) refuseHeldRun(folder);
    refuseQueuedSince(folder, course);
  }
  KJ_IF_MAYBE(own, background) enterBackground(folder, lock, isOfSweep, resolved, *own);
  return lock;
}

kj::Maybe<kj::String> RunCommand::whyNoTracing(const LoadedRuns& all) {
  if (tracePath.size() == 0) {
    if (options.trace == nullptr) return nullptr;
    return kj::str("--trace-steps needs --trace FILE");
  }
  if (all.sweep != nullptr) return kj::str("--trace is for a single run, and this is a sweep");
  if (!KJ_ASSERT_NONNULL(all.runs[0].loaded.experiment).cluster.isHere()) {
    return kj::str("--trace reads what the roles leave on this machine, so it needs ",
        "cluster.launcher = \"local\"");
  }
  if (options.trace == nullptr) options.trace = rpc::TraceSteps();
  return nullptr;
}

kj::Maybe<kj::String> RunCommand::whyNoMembership(const LoadedRuns& all) const {
  if (membershipOf.size() == 0) return nullptr;
  if (all.sweep != nullptr) return kj::str("--membership is for a single run, and this is a sweep");
  auto& experiment = KJ_ASSERT_NONNULL(all.runs[0].loaded.experiment);
  if (experiment.cluster.launcher->word == LauncherKind::SSH) {
    return kj::str("--membership: the workers read the folder of that run, which other hosts do ",
        "not have. Write cluster.launcher = \"local\"");
  }
  if (!experiment.cluster.onLoss->continues) {
    return kj::str("--membership needs cluster.on_loss = \"continue\"");
  }
  if (experiment.changesAtEpochEnds()) {
    return kj::str("--membership needs kvstore.mode = \"dist_sync\": in other modes, the result ",
        "depends on timing, so it cannot be repeated");
  }
  auto read = [&]() { MemberPlan({kj::str(membershipOf)}, experiment.cluster.seats()); };
  KJ_IF_MAYBE(e, kj::runCatchingExceptions(read)) return reasonOf(*e);
  return nullptr;
}

kj::Maybe<kj::String> RunCommand::whyNoCopies(const LoadedRuns& all) const {
  if (!options.copiesData) return nullptr;
  for (auto& run: all.runs) {
    auto& launcher = *KJ_ASSERT_NONNULL(run.loaded.experiment).cluster.launcher;
    if (launcher.word == LauncherKind::SSH) continue;
    return kj::str("--copy-data is for cluster.launcher = \"ssh\", and this file has \"",
        launcher.name, "\": leave it out, or choose that launcher");
  }
  return nullptr;
}

kj::Maybe<kj::String> RunCommand::whyNotInQueue(const LoadedRuns& all) const {
  KJ_IF_MAYBE(sweep, all.sweep) {
    if (sweep->stop != nullptr) {
      return kj::str("sweep.stop compares runs while they train, which the tasks of a job array ",
          "cannot. Run the sweep in one allocation (salloc), or leave out sweep.stop");
    }
  }
  return nullptr;
}

Validity RunCommand::printHandOver(
    const LoadedRuns& all, const kj::Maybe<Submission>& submission) const {
  KJ_IF_MAYBE(handedOver, submission) {
    struct Option {
      kj::StringPtr name;
      bool isGiven;
    };
    const Option IGNORED[] = {{"--detach", detach}, {"--resume", options.resumes},
        {"--folder", folderPath.size() > 0}, {"--runs", runs != RUNS}};
    for (auto& option: IGNORED) {
      if (!option.isGiven) continue;
      return kj::str("--dry-run only prints what would be handed over, without ", option.name,
          ". Leave it out");
    }
    if (all.sweep != nullptr) return kj::str("--dry-run is for a single run, not for a sweep");
    print(handedOver->text);
    return true;
  }
  return kj::str("--dry-run needs cluster.launcher = \"kubernetes\", or \"slurm\" outside of ",
      "an allocation");
}

kj::Maybe<RunFolder> RunCommand::folderToResume(LoadedRuns& all) {
  auto reload = [&](kj::String setting) -> LoadedExperiment& {
    continued = kj::mv(setting);
    addOverride(continued);
    all = loadAll();
    // The data are there already.
    addRecords(all);
    return all.runs[0].loaded;
  };
  KJ_IF_MAYBE(newest, newestRunOf(all.runs[0].loaded, runs)) {
    KJ_IF_MAYBE(written, newest->written) {
      auto& wanted = KJ_ASSERT_NONNULL(all.runs[0].loaded.experiment);
      if (!newest->hasNumbersOf(wanted)) return goOnFrom(*newest, runs, wanted, reload);
      reload(KJ_ASSERT_NONNULL(KJ_ASSERT_NONNULL(written->experiment).continued).setting());
    }
    auto& loaded = all.runs[0].loaded;
    endIfFinished(loaded, newest->folder);
    if (newest->record.state == RunRecord::FINISHED) {
      auto& weights = newest->record.weightsSha256;
      KJ_IF_MAYBE(why, whyNotWeights(newest->folder.weights(), weights)) {
        tell(kj::str("the run in ", newest->folder.path, " had finished, but continues: ", *why));
      }
    }
    auto& experiment = KJ_ASSERT_NONNULL(loaded.experiment);
    if (experiment.continued != nullptr) {
      auto digest = newest->record.digest.asPtr();
      auto found = newestCheckpoint(newest->folder, digest, [](kj::String why) { tell(why); });
      requireBeginning(experiment, newest->folder, found);
    }
    if (newest->record.digest.size() > 0) {
      requireContinuable(newest->folder, newest->record.digest);
    }
    keepInstructionSet(loaded, newest->record);
    return kj::mv(newest->folder);
  }
  auto& name = KJ_ASSERT_NONNULL(all.runs[0].loaded.experiment).name;
  tell(folderIdentity(kj::str(runs, "/", name)) != nullptr
           ? kj::str("none of the runs in ", runs, "/", name,
                 " belongs to this experiment: their values differ, or "
                 "they have not begun. A new run begins")
           : kj::str("this experiment has no run yet, so a new one begins"));
  return nullptr;
}

void RunCommand::endIfFinished(const LoadedExperiment& loaded, const RunFolder& folder) {
  if (lastLineOf(folder.events()).size() == 0) return;
  auto record = readRecordToResume(folder.path);
  if (record.state != RunRecord::FINISHED) return;
  if (whyNotWeights(folder.weights(), record.weightsSha256) != nullptr) return;
  tell(kj::str("the run in ", folder.path, " has finished"));
  auto sha256 = kj::str(record.weightsSha256);
  auto finished = resultOf(kj::mv(record), loaded, folder);
  printTables(finished);
  printWeights(sha256, folder.path);
  commandLine.endWith(codeOf(finished));
}

void RunCommand::warnOf(const LoadedRuns& all) {
  kj::HashSet<kj::String> told;
  auto warn = [&](kj::String sentence) {
    if (told.contains(sentence)) return;
    commandLine.warning(sentence);
    told.insert(kj::mv(sentence));
  };
  uint longest = 0;  // in epochs
  bool validates = false;
  for (auto& run: all.runs) {
    if (run.problem != nullptr) continue;
    auto& experiment = KJ_ASSERT_NONNULL(run.loaded.experiment);
    ModelFacts facts(experiment);
    uint epochs = facts.epochs(experiment);
    bool hasValidation = facts.validationRecords > 0;
    longest = kj::max(longest, epochs);
    validates = validates || hasValidation;
    if (!classNamesFit(facts.graph)) {
      warn(kj::str("the names of the ", facts.graph.classes, " classes do not fit into the header ",
          "of the weights, so `runner predict` will show their numbers"));
    }
    for (auto& sentence: endlessWarmUps(experiment, facts)) warn(kj::mv(sentence));
    if (experiment.checkpoint.keepBest && !hasValidation) {
      warn(kj::str("checkpoint.keep_best has no effect: there are no records to validate on, so ",
          "no epoch is the best one"));
    }
    if (experiment.train.earlyStop != nullptr && !hasValidation) {
      warn(kj::str("train.early_stop has no effect, because there are no records to validate on"));
    }
    auto lacks = neverReached(experiment.expectations, experiment.published, epochs, hasValidation);
    for (auto& sentence: lacks) warn(kj::mv(sentence));
  }
  KJ_IF_MAYBE(sweep, all.sweep) {
    KJ_IF_MAYBE(rule, sweep->stop) {
      KJ_IF_MAYBE(why, whyStopsNothing(*rule, longest, validates)) warn(kj::mv(*why));
    }
  }
}

}  // namespace runner
