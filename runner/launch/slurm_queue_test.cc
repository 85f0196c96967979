// Slurm's commands are shell scripts here. tests/hosts has a real Slurm.
#include "runner/launch/slurm_queue.h"

#include <doctest/doctest.h>
#include <kj/async-unix.h>
#include <kj/debug.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "runner/logs/run_lock.h"
#include "runner/system/files.h"
#include "runner/system/reason.h"
#include "tests/command.h"
#include "tests/text.h"

namespace runner {
namespace {

using tests::contains;

constexpr uint64_t TEXT_BYTES_MAX = 1 << 16;

// A folder with commands, which is first in PATH.
class Commands {
public:
  Commands(): folder(tests::newFolder()) {
    kj::UnixEventPort::captureChildExit();
    ::setenv("PATH", kj::str(folder, ":/usr/bin:/bin").cStr(), 1);
  }

  void add(kj::StringPtr name, kj::StringPtr script) const {
    auto path = kj::str(folder, "/", name);
    writeWhole(path, kj::str("#!/bin/sh\n", script, "\n"));
    KJ_SYSCALL(::chmod(path.cStr(), 0700));
  }

  const kj::String folder;
};

SlurmJob job(kj::StringPtr state, kj::StringPtr reason = nullptr) {
  return {kj::str("17"), kj::str(state), kj::str(reason), nullptr};
}

// Calls whySlurmEnded() for a run in `folder` that was job 17.
kj::String why(const RunFolder& folder, kj::Maybe<SlurmJob> last) {
  return whySlurmEnded(folder, last).orDefault(kj::str("nothing"));
}

TEST_CASE(
    "whySlurmEnded: names the state, the reason and what to do, unless the run ended by itself") {
  RunFolder folder{tests::newFolder()};
  noteSlurmJob(folder, "17");
  CHECK(contains(why(folder, job("FAILED", "NonZeroExitCode")),
      "job 17 of Slurm ended before its run began: FAILED (NonZeroExitCode); the nodes need"));
  CHECK(why(folder, nullptr) == "Slurm no longer has job 17, whose run has not ended");
  HeldRunFolder({kj::str(folder.path)}).lock.noteExit(130);
  CHECK(why(folder, job("FAILED", "NonZeroExitCode")) == "nothing");
  CHECK(why(folder, nullptr) == "nothing");
  CHECK(why(folder, job("TIMEOUT", "TimeLimit")) ==
        "Slurm ended job 17: TIMEOUT (TimeLimit); raise the limit, such as with "
        "SBATCH_TIMELIMIT=2:00:00");
  CHECK(contains(why(folder, job("NODE_FAIL")), "Slurm ended job 17: NODE_FAIL; one of its nodes"));
  CHECK(contains(why(folder, job("DEADLINE")), "`scontrol show job` says more"));
}

TEST_CASE("SlurmQueue: reads squeue's output, and distinguishes a forgotten job from no answer") {
  Commands commands;
  auto io = kj::setupAsyncIo();
  SlurmQueue queue(io);
  auto look = [&]() { return queue.look(kj::arr(kj::str("17"))).wait(io.waitScope); };
  commands.add("squeue", "echo '17_0|PENDING|Resources|'; echo '17_1|RUNNING|None|n[1-3]'");
  auto jobs = KJ_REQUIRE_NONNULL(look());
  REQUIRE(jobs.size() == 2);
  CHECK(jobs[0].id == "17_0");
  CHECK(jobs[0].isWaiting());
  CHECK(jobs[0].text() == "PENDING (Resources)");
  CHECK(!jobs[1].isOver());
  CHECK(jobs[1].text() == "RUNNING");
  CHECK(jobs[1].nodes == "n[1-3]");

  commands.add("squeue", "echo 'slurm_load_jobs error: Invalid job id specified' >&2; exit 1");
  CHECK(KJ_REQUIRE_NONNULL(look()).size() == 0);
  commands.add("squeue", "echo 'Unable to contact slurm controller' >&2; exit 1");
  CHECK(look() == nullptr);
}

TEST_CASE("SlurmQueue: asks for the tasks of an array whose ids are too long for one argument") {
  constexpr uint TASKS = 20000;
  Commands commands;
  auto io = kj::setupAsyncIo();
  SlurmQueue queue(io);
  kj::Vector<kj::String> ids;
  for (uint i = 0; i < TASKS; i++) ids.add(kj::str("1234567_", i));
  commands.add("squeue",
      kj::str("echo \"$*\" >", commands.folder,
          "/said; echo '1234567_19999|RUNNING|None|n1'; echo '1234567_20000|RUNNING|None|n1'"));
  auto jobs = KJ_REQUIRE_NONNULL(queue.look(ids).wait(io.waitScope));
  // The task that was not asked for is left out.
  REQUIRE(jobs.size() == 1);
  CHECK(jobs[0].id == "1234567_19999");
  CHECK(contains(readWhole(kj::str(commands.folder, "/said"), TEXT_BYTES_MAX), "--jobs=1234567\n"));
}

TEST_CASE("SlurmQueue: submits a script, and passes on why Slurm refuses it") {
  Commands commands;
  auto io = kj::setupAsyncIo();
  SlurmQueue queue(io);
  commands.add("sbatch", "[ \"$1 $2\" = '--parsable x.sh' ] && echo '17;cluster'");
  CHECK(queue.submit("x.sh").wait(io.waitScope) == "17");
  commands.add("sbatch", "echo 'sbatch: error: Batch job submission failed: No room' >&2; exit 1");
  auto refused = kj::runCatchingExceptions([&]() { queue.submit("x.sh").wait(io.waitScope); });
  CHECK(reasonOf(KJ_REQUIRE_NONNULL(refused)) ==
        "Slurm does not take the job: Batch job submission failed: No room");
  commands.add("sbatch", "echo 'Welcome to cluster'; echo 77");
  CHECK(queue.submit("x.sh").wait(io.waitScope) == "77");
  commands.add("sbatch", "echo 'Submitted batch job 77'");
  CHECK_THROWS_WITH(queue.submit("x.sh").wait(io.waitScope),
      doctest::Contains(
          "sbatch has not printed the number of the job, but: Submitted batch job 77. See "));
}

TEST_CASE("SlurmQueue: writes the ids of a job's tasks into the folders of their runs") {
  Commands commands;
  auto io = kj::setupAsyncIo();
  SlurmQueue queue(io);
  const RunFolder folders[] = {{tests::newFolder()}, {tests::newFolder()}};
  auto note = [&](size_t count) {
    queue.noteOrCancel("17", kj::arrayPtr(folders, count)).wait(io.waitScope);
    return kj::str(KJ_REQUIRE_NONNULL(slurmJobOf(folders[count - 1])));
  };
  CHECK(note(2) == "17_1");
  CHECK(note(1) == "17");
}

TEST_CASE("SlurmQueue: cancels a job whose id cannot be written, and reports if that fails too") {
  Commands commands;
  auto io = kj::setupAsyncIo();
  SlurmQueue queue(io);
  const RunFolder missing[] = {{kj::str(commands.folder, "/missing")}};
  auto reason = [&]() {
    return reasonOf(KJ_REQUIRE_NONNULL(kj::runCatchingExceptions(
        [&]() { queue.noteOrCancel("17", missing).wait(io.waitScope); })));
  };
  commands.add("scancel", kj::str("echo \"$*\" >>", commands.folder, "/said"));
  commands.add("squeue", "echo '17|CANCELLED|None|'");
  auto notNoted = reason();
  CHECK(contains(notNoted, "/missing/slurm_job"));
  CHECK_FALSE(contains(notNoted, "scancel"));
  CHECK(contains(readWhole(kj::str(commands.folder, "/said"), TEXT_BYTES_MAX), "TERM 17\n"));

  commands.add("scancel", "echo 'scancel: error: Access/permission denied' >&2; exit 1");
  CHECK(reason() ==
        kj::str("job 17 of Slurm was submitted, but its number cannot be noted (", notNoted,
            "), and the job cannot be cancelled (scancel: Access/permission denied). Cancel it "
            "with `scancel 17`"));
}

TEST_CASE("SlurmQueue: asks a run to end before it lets Slurm kill the remaining processes") {
  Commands commands;
  auto io = kj::setupAsyncIo();
  SlurmQueue queue(io);
  commands.add("scancel", kj::str("echo \"$*\" >>", commands.folder, "/said"));
  commands.add("squeue", "echo '17|FAILED|NonZeroExitCode|n1'");
  queue.cancel(kj::arr(kj::str("17"))).wait(io.waitScope);
  CHECK(readWhole(kj::str(commands.folder, "/said"), TEXT_BYTES_MAX) ==
        "--state=PENDING 17\n--batch --signal=TERM 17\n");

  commands.add("scancel", "echo 'scancel: error: Access/permission denied' >&2; exit 1");
  auto refused =
      kj::runCatchingExceptions([&]() { queue.cancel(kj::arr(kj::str("17"))).wait(io.waitScope); });
  CHECK(contains(reasonOf(KJ_REQUIRE_NONNULL(refused)), "permission denied"));
}

}  // namespace
}  // namespace runner
