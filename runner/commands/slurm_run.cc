#include "runner/commands/slurm_run.h"

#include <kj/async-unix.h>

#include "configs/language/failure.h"
#include "runner/commands/followed_run.h"
#include "runner/launch/slurm_launcher.h"
#include "runner/launch/slurm_queue.h"
#include "runner/logs/run_lock.h"
#include "runner/system/files.h"
#include "runner/system/slurm_job.h"
#include "runner/system/terminal.h"
#include "runner/text/numbers.h"

namespace runner {

void refuseQueued(const RunFolder& folder) {
  bool hasNone = slurmJobOf(folder) == nullptr || (!isHeld(folder) && !isQueued(folder));
  if (hasNone) return;
  kj::UnixEventPort::captureChildExit();
  auto io = kj::setupAsyncIo();
  refuseQueued(folder, io);
}

void refuseQueued(const RunFolder& folder, kj::AsyncIoContext& io) {
  KJ_IF_MAYBE(id, slurmJobOf(folder)) {
    if (isOwnSlurmJob(*id)) return;
    SlurmQueue queue(io);
    KJ_IF_MAYBE(known, queue.look(kj::arrayPtr(&*id, 1)).wait(io.waitScope)) {
      for (auto& job: *known) {
        if (job.isOver()) continue;
        configs::fail("job ", *id, " of Slurm works on ", folder.path, " already: ", job.text(),
            ". `runner attach ", folder.path, "` follows it, and `runner stop ", folder.path,
            "` ends it");
      }
      noteSlurmJobIsOver(folder, *id);
    } else if (isHeld(folder) || lastExitCodeOf(folder) == nullptr) {
      configs::fail("squeue does not answer, so the state of job ", *id, ", which works on ",
          folder.path,
          ", is not known. Run this command on a machine with Slurm's commands, or remove ",
          slurmJobFile(folder), " if the job has ended");
    }
  }
}

bool isAwaited(const RunFolder& folder) {
  KJ_IF_MAYBE(id, slurmJobOf(folder)) return isOwnSlurmJob(*id);
  // A process that submits a run notes an exit code only if that fails or is interrupted.
  return ownSlurmJob() != nullptr && lastExitCodeOf(folder) == nullptr;
}

void runInQueue(const LoadedExperiment& loaded, const RunFolder& folder, SubmissionLocks locks,
    bool detach, Course& course, CommandLine& commandLine) {
  auto& experiment = KJ_ASSERT_NONNULL(loaded.experiment);
  SlurmQueue queue(course.io);
  kj::String job;
  auto submit = [&]() {
    writeWhole(folder.experiment(), loaded.resolved);
    auto script = kj::str(folder.path, "/slurm.sh");
    writeWhole(script, slurmScript({&experiment}, kj::arrayPtr(&folder, 1), nullptr));
    return queue.submit(script);
  };
  auto submission = kj::evalNow(submit)
                        .then([&](kj::String&& id) {
                          job = kj::mv(id);
                          return queue.noteOrCancel(job, kj::arrayPtr(&folder, 1));
                        })
                        .then([&]() { locks.release(); })
                        .fork();
  // `runner attach` and `runner stop` look for the exit code. The job may have noted its own.
  auto noteExit = [&](int code) {
    KJ_IF_MAYBE(lock, locks.run) return lock->noteExit(code);
    if (lastExitCodeOf(folder) != nullptr) return;
    kj::runCatchingExceptions([&]() { HeldRunFolder({kj::str(folder.path)}).lock.noteExit(code); });
  };
  auto cancel = [&]() {
    tell("cancelling the job. Another Ctrl-C does not wait for its end");
    // Without its number, nobody could cancel it.
    auto cancelled =
        submission.addBranch().then([&]() { return queue.cancel(kj::arr(kj::str(job))); });
    return course.endsUninterrupted(kj::mv(cancelled), [](kj::StringPtr) {});
  };
  auto endInterrupted = [&](bool hasEnded) {
    if (hasEnded) tell(kj::str("interrupted; job ", job, " of Slurm has ended"));
    if (hasEnded) noteExit(INTERRUPTED);
    commandLine.endWith(INTERRUPTED);
  };
  bool isSubmitted = false, hasEnded = false;
  auto refused = kj::runCatchingExceptions([&]() {
    isSubmitted = course.endsUninterrupted(submission.addBranch(), [](kj::StringPtr) {});
    if (!isSubmitted) hasEnded = cancel();
  });
  KJ_IF_MAYBE(e, refused) {
    // If the job's number was noted, the job may still wait in the queue.
    if (slurmJobOf(folder) == nullptr) noteExit(RUN_FAILED);
    locks.release();
    kj::throwFatalException(kj::mv(*e));
  }
  if (!isSubmitted) endInterrupted(hasEnded);
  auto tasks = slurmTasks(experiment);
  tell(kj::str("run ", folder.path, " is job ", job, " of Slurm, with ", counted(tasks, "task")));
  if (detach) {
    tell(kj::str("`runner attach ", folder.path, "` follows it, and `runner stop ", folder.path,
        "` ends it"));
    print(kj::str(folder.path, "\n"));
    commandLine.endWith(OK);
  }
  FollowedRun run({kj::str(folder.path)}, course.io, tasks);
  if (!course.endsUninterrupted(run.follow(), [](kj::StringPtr) {})) {
    bool hasEnded = cancel();
    run.printMore();
    endInterrupted(hasEnded);
  }
  KJ_IF_MAYBE(reason, run.reasonOfSlurm()) {
    tell(kj::str("error: ", *reason));
    commandLine.endWith(RUN_FAILED);
  }
  commandLine.endWith(ExitCode(run.end().exitCode));
}

}  // namespace runner
