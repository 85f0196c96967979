// Runs that are submitted to Slurm, or resumed by one of its jobs. Scripts stand in for its
// commands.
#include <doctest/doctest.h>
#include <kj/debug.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "tests/faults/failure.h"
#include "tests/faults/resumable_run.h"
#include "tests/text.h"

namespace tests {
namespace {

constexpr kj::StringPtr RESUME = "--resume"_kj;

// Shell scripts in place of other programs, such as those of Slurm.
struct StandIns {
  const kj::String folder = newFolder();
  const kj::String path = kj::str(::getenv("PATH"));

  StandIns() { ::setenv("PATH", kj::str(folder, ":", path).cStr(), 1); }
  ~StandIns() noexcept(false) { ::setenv("PATH", path.cStr(), 1); }
  KJ_DISALLOW_COPY(StandIns);

  // Returns the path of the program.
  kj::String add(kj::StringPtr name, kj::StringPtr script) const {
    auto program = kj::str(folder, "/", name);
    writeFile(program, kj::str("#!/bin/sh\n", script));
    KJ_SYSCALL(::chmod(program.cStr(), 0700));
    return program;
  }
};

TEST_CASE("--resume is refused while Slurm has the job of the run, except within that job") {
  ResumableRun run(nullptr);
  run.trainUntil(SAVED, 1);
  writeFile(kj::str(run.folder, "/slurm_job"), "17\n");
  StandIns slurm;
  slurm.add("squeue", "echo '17|PENDING|Resources|'\n");
  auto refuses = [&](Words words) {
    checkFailed(run.start(words)->wait(),
        {"job 17 of Slurm works on ", "/resumable/1 already: PENDING (Resources)"});
  };
  refuses({RESUME});
  refuses({RESUME, "--detach"});
  refuses({RESUME, "--folder", run.folder});

  ::setenv("SLURM_JOB_ID", "17", 1);
  KJ_DEFER(::unsetenv("SLURM_JOB_ID"));
  run.resume();
}

TEST_CASE("--resume is refused if another command submits the run meanwhile") {
  ResumableRun run(nullptr);
  run.trainUntil(SAVED, 1);
  auto number = kj::str(run.folder, "/slurm_job");
  // When it is asked for the first job, another command notes the second one.
  StandIns slurm;
  slurm.add("squeue", kj::str("case $* in *17*) echo '17|COMPLETED||'; echo 18 >", number,
                          ";; *) echo '18|PENDING|Resources|';; esac\n"));
  auto refuses = [&](Words words) {
    writeFile(number, "17\n");
    checkFailed(run.start(words)->wait(), {"job 18 of Slurm works on "});
    CHECK(run.read("slurm_job") == "18\n");
  };
  refuses({RESUME});
  refuses({RESUME, "--detach"});
  refuses({RESUME, "--folder", run.folder});
  refuses({RESUME, "--set", "cluster.launcher=slurm"});
}

TEST_CASE(
    "while a run is submitted to Slurm, its job may begin, and nobody else works on the run") {
  kj::StringPtr slurm[] = {"cluster.launcher=slurm"};
  ResumableRun run(slurm);
  // These scripts replace Slurm's own commands. Before `sbatch` ends, two other commands try to
  // submit and to train the run. If there is a FIFO, `sbatch` also starts job $JOB, which writes
  // its output to the FIFO. The job is that of the run, or another one.
  constexpr kj::StringPtr SBATCH = R"(
for script; do :; done
folder=${script%/*}
if [ -p "$0.fifo" ]; then
  # Opening the FIFO waits for its reader. `sbatch` must end all the same.
  {
    {
      SLURM_JOB_ID=$JOB $RUNNER run "$folder/experiment.toml" --folder "$folder" --resume \
        --set cluster.launcher=local 2>&1
      echo "exit $?"
    } | cat >"$0.fifo"
  } >/dev/null 2>&1 </dev/null &
fi
for launcher in slurm local; do
  $RUNNER run "$FILE" --runs "$RUNS" --set cluster.launcher=$launcher --resume
  echo "exit $?"
done >"$0.output" 2>&1 </dev/null
echo '17|PENDING||' >"${0%sbatch}state"
echo 17
)"_kj;
  StandIns commands;
  auto sbatch = commands.add("sbatch", SBATCH), state = kj::str(commands.folder, "/state");
  commands.add("squeue", kj::str("cat ", state, "\n"));
  ::setenv("RUNNER", RUNNER.cStr(), 1);
  ::setenv("FILE", RESUMABLE.cStr(), 1);
  ::setenv("RUNS", run.runs.cStr(), 1);
  auto fifo = kj::str(sbatch, ".fifo");
  auto submit = [&](kj::StringPtr job, kj::ArrayPtr<const kj::StringPtr> words) {
    writeFile(state, "17|COMPLETED||\n");
    ::setenv("JOB", job.cStr(), 1);
    auto submitting = run.start(words);
    auto ended = submitting->wait();
    INFO(ended.errors);
    REQUIRE(ended.exitCode == 0);
    CHECK(run.read("slurm_job") == "17\n");
    auto others = readFile(kj::str(sbatch, ".output"));
    INFO(others);
    CHECK(contains(others, kj::str("another process submits the run in ", run.folder)));
    CHECK(contains(others, kj::str("process ", submitting->pid(), " works in ", run.folder)));
    CHECK(countOf(others, "exit 1\n") == 2);
  };
  submit("", {"--detach"_kj});
  KJ_SYSCALL(::mkfifo(fifo.cStr(), 0600));
  submit("99", {"--detach"_kj, RESUME});
  auto queued = "job 17 of Slurm works on"_kj;
  CHECK(contains(readFile(fifo), queued));
  checkFailed(
      run.start({"--folder", run.folder, "--set", "cluster.launcher=local"})->wait(), {queued});
  CHECK(run.read("slurm_job") == "17\n");
  submit("17", {"--detach"_kj, RESUME});
  CHECK(contains(readFile(fifo), "\nexit 0\n"));
}

TEST_CASE("a run that Slurm refuses has failed, even if Ctrl-C interrupts its submission") {
  kj::StringPtr slurm[] = {"cluster.launcher=slurm"};
  ResumableRun run(slurm);
  StandIns commands;
  commands.add("sbatch", "kill -INT $PPID\necho nope >&2\nexit 1\n");
  checkFailed(run.start()->wait(), {"nope"});
  CHECK(contains(run.read(".lock"), "\nexit 1\n"));
}

TEST_CASE("a run whose job Slurm does not cancel has no end yet") {
  kj::StringPtr slurm[] = {"cluster.launcher=slurm"};
  ResumableRun run(slurm);
  StandIns commands;
  commands.add("sbatch", "kill -INT $PPID\necho 17\n");
  commands.add("scancel", "echo 'access denied' >&2\nexit 1\n");
  commands.add("squeue", "echo '17|PENDING||'\n");
  checkFailed(run.start()->wait(), {"access denied"});
  CHECK(run.read("slurm_job") == "17\n");
  CHECK_FALSE(contains(run.read(".lock"), "\nexit "));
}

TEST_CASE("a Slurm job that fails before its number is noted has noted its exit code") {
  ResumableRun run(nullptr);
  run.trainUntil(SAVED, 1);
  ::setenv("SLURM_JOB_ID", "17", 1);
  KJ_DEFER(::unsetenv("SLURM_JOB_ID"));
  // A process that submits a run notes no exit code, and neither does one that is killed.
  CHECK_FALSE(contains(run.read(".lock"), "\nexit "));
  auto ended = run.start({"--folder", run.folder, RESUME, "--set", "train.seed=99"})->wait();
  INFO(ended.errors);
  CHECK(ended.exitCode > 0);
  CHECK(contains(run.read(".lock"), kj::str("\nexit ", ended.exitCode, "\n")));
}

}  // namespace
}  // namespace tests
