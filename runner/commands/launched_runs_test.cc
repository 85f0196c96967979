#include "runner/commands/launched_runs.h"

#include <doctest/doctest.h>
#include <stdlib.h>

#include "runner/launch/slurm_queue.h"
#include "runner/logs/run_lock.h"

namespace runner {
namespace {

TEST_CASE("isQueued: a job that Slurm has interrupted may wait again, and a finished one may not") {
  RunFolder folder{kj::str(::getenv("TEST_TMPDIR"), "/queued")};
  makeFolders(folder.path);
  auto end = [&](int code) { HeldRunFolder({kj::str(folder.path)}).lock.noteExit(code); };
  end(INTERRUPTED);
  CHECK_FALSE(isQueued(folder));
  noteSlurmJob(folder, "17");
  CHECK(isQueued(folder));
  end(RUN_FAILED);
  CHECK(isQueued(folder));
  {
    HeldRunFolder held({kj::str(folder.path)});
    CHECK_FALSE(isQueued(folder));
  }
  end(OK);
  CHECK_FALSE(isQueued(folder));
  end(MISSED);
  CHECK_FALSE(isQueued(folder));
}

TEST_CASE("endOf: a Slurm job that was cancelled in the queue has not begun its run") {
  RunFolder folder{kj::str(::getenv("TEST_TMPDIR"), "/cancelled")};
  makeFolders(folder.path);
  noteSlurmJob(folder, "17");
  CHECK(endOf(folder).text == "job 17 of Slurm ended before the run began");
  // The process that submitted the run has had its lock, too.
  HeldRunFolder({kj::str(folder.path)});
  CHECK(endOf(folder).text == "job 17 of Slurm ended before the run began");
  ::setenv("SLURM_JOB_ID", "17", 1);
  KJ_DEFER(::unsetenv("SLURM_JOB_ID"));
  HeldRunFolder({kj::str(folder.path)});
  CHECK(endOf(folder).text == "ended without an exit code: its process was killed");
}

}  // namespace
}  // namespace runner
