// `runner scale` changes how many workers a job with cluster.on_loss = "continue" has.
#include <capnp/message.h>
#include <doctest/doctest.h>
#include <kj/debug.h>
#include <signal.h>

#include "runner/logs/events.h"
#include "tests/faults/failure.h"
#include "tests/faults/roles_by_hand.h"
#include "tests/text.h"

namespace tests {
namespace {

constexpr kj::StringPtr SHORT = "tests/faults/short.toml"_kj;

Ended scale(const Run& run, kj::StringPtr count) {
  return Command({RUNNER, "scale", run.folder, count}).wait();
}

// Checks that `runner scale` ends well, and that the workers are those from 0 to `count` - 1.
void checkScales(const Run& run, uint count) {
  auto ended = scale(run, kj::str(count));
  INFO(ended.errors);
  CHECK(ended.exitCode == 0);
  CHECK(ended.errors.endsWith(kj::str(run.folder, " has ", count, " workers\n")));
}

TEST_CASE("a job that gets more workers and then fewer uses every record of an epoch once") {
  Run run(SHORT, {"cluster.on_loss=continue", "cluster.elastic={min=2,max=4}", "train.epochs=12"});
  REQUIRE(run.command.waitForOutput("Epoch[1] Batch [100]"));
  checkScales(run, 4);
  CHECK(run.role("worker", 3).pid > 0);
  checkScales(run, 3);
  checkScales(run, 2);
  auto ended = run.command.wait();
  INFO(ended.errors);
  CHECK(ended.exitCode == 0);
  CHECK(contains(ended.errors, "worker 3 has joined at step "));
  CHECK(contains(ended.errors, "worker 3 has left before step "));
  CHECK(contains(ended.errors, "worker 2 has left before step "));
  checkNothingLeft(run);
  uint joined = 0, left = 0, lost = 0, validated = 0;
  for (auto& line: linesOf(run.read("events.jsonl"))) {
    capnp::MallocMessageBuilder message;
    auto event = message.initRoot<runner::Event>();
    runner::parseEvent(line, event);
    if (event.isValidated()) {
      CHECK(event.getValidated().getImages() == 10000);
      validated++;
    }
    if (!event.isMembership()) continue;
    auto change = event.getMembership();
    joined += change.getJoined();
    left += change.getLeft();
    lost += !change.getJoined() && !change.getLeft();
  }
  CHECK(validated > 0);
  CHECK(joined == 2);
  CHECK(left == 2);
  CHECK(lost == 0);
}

TEST_CASE("a job that restarts has the workers that it had when it was saved") {
  Run run(SHORT, {"cluster.on_loss=continue", "cluster.elastic={min=1,max=4}", "train.epochs=12",
                     "checkpoint.every_steps=20"});
  REQUIRE(run.command.waitForOutput("Epoch[1] Batch [100]"));
  checkScales(run, 3);
  REQUIRE(run.command.waitForOutput("Epoch[3] Batch [100]"));
  KJ_SYSCALL(::kill(run.role("server", 0).pid, SIGKILL));
  auto ended = run.command.wait();
  INFO(ended.errors);
  CHECK(ended.exitCode == 0);
  CHECK(contains(ended.errors, "All roles are started again"));
  CHECK(contains(run.read("worker-2.log"), "has done its last step"));
}

TEST_CASE("a worker that freezes before it has left gives up its place") {
  Run run(SHORT, {"cluster.on_loss=continue", "cluster.workers=3", "cluster.elastic={min=1}",
                     "train.epochs=30", "cluster.silence_timeout_s=1"});
  REQUIRE(run.command.waitForOutput("Epoch[1] Batch [100]"));
  auto frozen = run.role("worker", 2).pid;
  KJ_SYSCALL(::kill(frozen, SIGSTOP));
  checkScales(run, 2);
  REQUIRE(run.command.waitForErrors("worker 2 was lost in step "));
  checkScales(run, 3);
  CHECK(run.role("worker", 2).pid != frozen);
  auto ended = run.command.wait();
  INFO(ended.errors);
  CHECK(ended.exitCode == 0);
  checkNothingLeft(run);
}

TEST_CASE("a job that cannot have the requested number of workers says why") {
  Run elastic(SHORT, {"cluster.on_loss=continue", "train.epochs=1000"});
  REQUIRE(elastic.command.waitForOutput("Speed: "));
  auto tooMany = scale(elastic, "3");
  CHECK(tooMany.exitCode == 2);
  CHECK(contains(tooMany.errors, " allows 1 to 2 workers (cluster.elastic), not 3. Stop it with "));
  CHECK(contains(scale(elastic, "2 ").errors, "write a number of workers, e.g. 4"));
  CHECK(contains(scale(elastic, "x").errors, "write a number of workers, e.g. 4"));
  elastic.command.kill(SIGTERM);
  elastic.command.wait();
  CHECK(contains(scale(elastic, "2").errors, " is over: interrupted: received SIGTERM"));

  auto folder = newFolder();
  auto coordinator = startByHand(
      {SHORT, "--role", "coordinator", "--folder", folder, "--set", "cluster.on_loss=continue"});
  addressOf(*coordinator);
  auto byHand = Command({RUNNER, "scale", folder, "1"}).wait();
  CHECK(byHand.exitCode == 2);
  CHECK(contains(
      byHand.errors, " was started by hand, so no launcher starts or ends workers for it. "));

  auto runs = newFolder();
  auto cache = cacheSetting();
  kj::StringPtr environment[] = {cache};
  Command repeating({RUNNER, "run", SHORT, "--runs", runs, "--membership", elastic.folder, "--set",
                        "cluster.on_loss=continue", "--set", "train.epochs=1000"},
      {.environment = environment});
  REQUIRE(repeating.waitForOutput("Speed: "));
  auto repeats = Command({RUNNER, "scale", kj::str(runs, "/short"), "1"}).wait();
  CHECK(repeats.exitCode == 2);
  CHECK(contains(repeats.errors, " repeats the workers of another run (--membership), so "));
  repeating.kill(SIGTERM);
  CHECK(repeating.wait().exitCode == 130);
  // Without these losses and joins, it would train other weights.
  Command resumed({RUNNER, "run", SHORT, "--runs", runs, "--resume", "--set",
                      "cluster.on_loss=continue", "--set", "train.epochs=1000"},
      {.environment = environment});
  checkFailed(resumed.wait(), {"repeats the losses and joins of workers of another run"});

  Run other(SHORT, {"train.epochs=1000"});
  REQUIRE(other.command.waitForOutput("Speed: "));
  auto refused = scale(other, "2");
  CHECK(refused.exitCode == 2);
  CHECK(contains(refused.errors, " has cluster.on_loss = \"fail\", so its workers cannot change "));
  other.command.kill(SIGTERM);
  other.command.wait();
}

}  // namespace
}  // namespace tests
