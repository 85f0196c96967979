#include "runner/commands/slurm_run.h"

#include "runner/commands/followed_run.h"
#include "runner/launch/slurm_launcher.h"
#include "runner/launch/slurm_queue.h"
#include "runner/system/files.h"
#include "runner/system/terminal.h"
#include "runner/text/numbers.h"

namespace runner {

void runInQueue(const LoadedExperiment& loaded, const RunFolder& folder, bool detach,
    Course& course, CommandLine& commandLine) {
  auto& experiment = KJ_ASSERT_NONNULL(loaded.experiment);
  writeWhole(folder.experiment(), loaded.resolved);
  auto script = kj::str(folder.path, "/slurm.sh");
  writeWhole(script, slurmScript({&experiment}, kj::arrayPtr(&folder, 1), nullptr));
  SlurmQueue queue(course.io);
  auto job = queue.submit(script).wait(course.io.waitScope);
  noteSlurmJob(folder, job);
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
    tell(kj::str("cancelling job ", job, " of Slurm. Another Ctrl-C does not wait for its end"));
    auto cancelled = queue.cancel(kj::arr(kj::str(job)));
    if (course.endsUninterrupted(kj::mv(cancelled), [](kj::StringPtr) {})) {
      run.printMore();
      tell(kj::str("interrupted; job ", job, " of Slurm has ended"));
    }
    commandLine.endWith(INTERRUPTED);
  }
  KJ_IF_MAYBE(reason, run.reasonOfSlurm()) {
    tell(kj::str("error: ", *reason));
    commandLine.endWith(RUN_FAILED);
  }
  commandLine.endWith(ExitCode(run.end().exitCode));
}

}  // namespace runner
