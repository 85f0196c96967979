// Runs that `runner run` submits to Slurm itself.
#include <doctest/doctest.h>
#include <kj/debug.h>
#include <signal.h>

#include "tests/faults/failure.h"
#include "tests/hosts/slurm_hosts.h"
#include "tests/skip.h"
#include "tests/text.h"

namespace tests {
namespace {

constexpr kj::StringPtr SHORT = "tests/faults/short.toml"_kj;
// The time that `squeue` and `scancel` may take.
constexpr uint CANCELLED_WITHIN_S = 30;

void interrupt(const Slurm& slurm) {
  KJ_SYSCALL(::kill(slurm.find(0, kj::str(RUNNER, " run tests/")).pid, SIGINT));
}

TEST_CASE("outside of an allocation, runner run submits the run and shows it as a local one") {
  KJ_IF_MAYBE(why, Slurm::whyNot()) SKIP_CASE(why->cStr());
  constexpr kj::StringPtr ROLES[] = {"cluster.servers=2"_kj, "cluster.workers=3"_kj};
  auto alone = train(SHORT, ROLES);
  Slurm slurm;
  auto ended = slurm.submit(SHORT)->wait();
  INFO(ended.errors);
  CHECK(ended.exitCode == 0);
  CHECK(contains(ended.errors, "short/1 is job 1 of Slurm, with 5 tasks\n"));
  CHECK(contains(ended.output, "Epoch[1] Validation-accuracy="));
  CHECK(contains(ended.output, "| epoch | "));
  CHECK(contains(ended.output, alone.weightsSha256));
  slurm.checkNoRoleRuns();

  auto detached = slurm.submit(SHORT, {"--detach"})->wait();
  CHECK(detached.exitCode == 0);
  auto folder = kj::str(slurm.runs, "/short/2");
  CHECK(detached.output == kj::str(folder, "\n"));
  auto attached = slurm.start(1, {RUNNER, "attach", folder})->wait();
  CHECK(attached.exitCode == 0);
  CHECK(contains(attached.output, alone.weightsSha256));
  CHECK(contains(attached.errors, "short/2: finished"));
}

TEST_CASE("a Slurm job ends with Ctrl-C, and another user's scancel is named") {
  KJ_IF_MAYBE(why, Slurm::whyNot()) SKIP_CASE(why->cStr());
  Slurm slurm;
  auto interrupted = slurm.submit(ENDLESS);
  REQUIRE(interrupted->waitForOutput("Speed: "));
  interrupt(slurm);
  auto ended = interrupted->wait(CANCELLED_WITHIN_S);
  CHECK(ended.exitCode == 130);
  CHECK(contains(ended.errors, "interrupted; job 1 of Slurm has ended"));
  CHECK(contains(readFile(kj::str(slurm.runs, "/endless/1/events.jsonl")), "received SIGTERM"));
  slurm.checkNoJob("endless");
  slurm.checkNoRoleRuns();

  auto cancelled = slurm.submit(ENDLESS);
  REQUIRE(cancelled->waitForOutput("Speed: "));
  slurm.call(0, "scancel --name=endless");
  checkFailed(cancelled->wait(CANCELLED_WITHIN_S), {"Slurm ended job 2: CANCELLED", "scancel"});
  slurm.checkNoRoleRuns();

  // The job continues without the process that has submitted it.
  auto lost = slurm.submit(ENDLESS);
  REQUIRE(lost->waitForOutput("Speed: "));
  KJ_SYSCALL(::kill(slurm.find(0, kj::str(RUNNER, " run tests/")).pid, SIGKILL));
  lost->wait();
  auto folder = kj::str(slurm.runs, "/endless/3");
  auto attached = slurm.start(1, {RUNNER, "attach", folder});
  REQUIRE(attached->waitForOutput("Speed: "));
  CHECK(contains(slurm.start(1, {RUNNER, "ps", "--runs", slurm.runs})->wait().output, "| job 3"));
  checkFailed(slurm.submit(ENDLESS, {"--resume"})->wait(),
      {"job 3 of Slurm works on ", "endless/3 already: RUNNING", "`runner stop "});
  auto stopped = slurm.start(1, {RUNNER, "stop", folder})->wait();
  CHECK(stopped.exitCode == 0);
  CHECK(contains(stopped.errors, "interrupted: received SIGTERM"));
  CHECK(attached->wait(CANCELLED_WITHIN_S).exitCode != 0);
  slurm.checkNoJob("endless");
  slurm.checkNoRoleRuns();

  // Resumes the run in a job again, and then on this machine.
  auto again = slurm.submit(ENDLESS, {"--resume", "--detach"})->wait();
  CHECK(contains(again.errors, "endless/3 is job 4 of Slurm"));
  CHECK(contains(slurm.start(1, {RUNNER, "ps", "--runs", slurm.runs})->wait().output, "| job 4"));
  CHECK(slurm.start(1, {RUNNER, "stop", folder})->wait().exitCode == 0);
  slurm.checkNoJob("endless");
  auto here = slurm.submit(ENDLESS, {"--resume", "--set", "cluster.launcher=local"});
  REQUIRE(here->waitForOutput("Speed: "));
  auto listed = slurm.start(0, {RUNNER, "ps", "--runs", slurm.runs})->wait().output;
  CHECK(contains(listed, "endless/3 | "));
  CHECK_FALSE(contains(listed, "job 4"));
  CHECK(slurm.start(0, {RUNNER, "stop", folder})->wait().exitCode == 0);
  CHECK(here->wait().exitCode == 130);
}

TEST_CASE("a job that waits in the queue of Slurm is shown with its reason and can be cancelled") {
  KJ_IF_MAYBE(why, Slurm::whyNot()) SKIP_CASE(why->cStr());
  Slurm slurm;
  slurm.call(0, "sbatch --nodes=4 --exclusive --output=/dev/null --wrap='sleep 1000'");
  slurm.call(0, "until [ \"$(squeue --noheader --states=running)\" ]; do sleep 0.1; done");
  auto waiting = slurm.submit(ENDLESS);
  REQUIRE(waiting->waitForErrors("waiting for 5 tasks (Resources)"));
  auto listed = slurm.start(1, {RUNNER, "ps", "--runs", slurm.runs})->wait();
  CHECK(contains(listed.output, "| job 2: PENDING (Resources) |"));
  interrupt(slurm);
  CHECK(waiting->wait(CANCELLED_WITHIN_S).exitCode == 130);
  slurm.checkNoJob("endless");

  auto detached = slurm.submit(ENDLESS, {"--detach"})->wait();
  CHECK(detached.exitCode == 0);
  for (auto launcher: {"cluster.launcher=slurm"_kj, "cluster.launcher=local"_kj}) {
    checkFailed(slurm.submit(ENDLESS, {"--resume", "--set", launcher})->wait(),
        {"job 3 of Slurm works on ", "endless/2 already: PENDING (Resources)"});
  }
  auto folder = kj::str(slurm.runs, "/endless");
  auto stopped = slurm.start(1, {RUNNER, "stop", folder})->wait();
  CHECK(contains(stopped.errors, "endless/2: cancelled before it began"));
  slurm.checkNoJob("endless");

  // Slurm immediately refuses a job that can never run. The interface is that of a node, so this
  // machine need not have it.
  constexpr kj::StringPtr OF_NODE[] = {"--set"_kj, "cluster.interface=ib0"_kj};
  auto refused = slurm.submit(ENDLESS, OF_NODE, {"SBATCH_PARTITION=none"})->wait();
  checkFailed(refused, {"Slurm does not take the job: ", "invalid partition"});
  auto asked = slurm.start(1, {RUNNER, "attach", folder})->wait();
  CHECK(asked.exitCode == 1);
  CHECK(contains(asked.errors, "endless/3: ended with exit code 1"));
}

}  // namespace
}  // namespace tests
