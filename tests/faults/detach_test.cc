// Runs in the background: `runner run --detach`, and the commands that follow, list and end runs.
#include <doctest/doctest.h>
#include <kj/debug.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runner/logs/run_folder.h"
#include "runner/logs/run_lock.h"
#include "tests/faults/failure.h"
#include "tests/faults/roles_by_hand.h"
#include "tests/text.h"

namespace tests {
namespace {

constexpr kj::StringPtr SHORT = "tests/faults/short.toml"_kj;

kj::Own<Command> start(Words words) {
  auto cache = cacheSetting();
  kj::StringPtr environment[] = {cache};
  kj::Vector<kj::StringPtr> all;
  all.add(RUNNER);
  all.addAll(words);
  return kj::heap<Command>(all.asPtr(), Command::Surroundings{.environment = environment});
}

Ended call(Words words) {
  return start(words)->wait();
}

// A run that `runner run --detach` has started, in a separate folder.
struct Detached {
  explicit Detached(kj::StringPtr file, kj::StringPtr more = "--detach"): runs(newFolder()) {
    auto ended = call({"run", file, "--runs", runs, "--detach", more});
    KJ_REQUIRE(ended.exitCode == 0, ended.errors);
    KJ_REQUIRE(ended.output.endsWith("\n"), ended.output);
    folder = kj::heapString(ended.output.slice(0, ended.output.size() - 1));
    said = kj::mv(ended.errors);
  }
  ~Detached() { call({"stop", folder}); }

  kj::String runs, folder, said;
};

pid_t launcherOf(kj::StringPtr folder) {
  return KJ_ASSERT_NONNULL(runner::lastHolderOf({kj::str(folder)})).process.pid;
}

TEST_CASE("a detached run outlives its terminal, and attach shows its output and its exit code") {
  auto runs = newFolder();
  auto cache = cacheSetting();
  kj::StringPtr environment[] = {cache};
  auto line = kj::str(RUNNER, " run ", SHORT, " --detach --runs ", runs);
  // The terminal closes when its only command has ended. It then sends SIGHUP to its processes.
  auto shown = Command({"script", "--quiet", "--return", "--command", line, "/dev/null"},
      {.environment = environment})
                   .wait();
  INFO(shown.output);
  REQUIRE(shown.exitCode == 0);
  auto folder = kj::str(runs, "/short/1");
  CHECK(contains(shown.output, kj::str("\n", folder, "\r\n")));
  CHECK(contains(shown.output, "runner attach"));
  CHECK_FALSE(contains(shown.output, "Speed: "));
  // Its session has no terminal.
  auto pid = launcherOf(folder);
  if (runner::isHeld({kj::str(folder)})) CHECK(::getsid(pid) == pid);

  auto attached = call({"attach", kj::str(runs, "/short")});
  INFO(attached.output, attached.errors);
  CHECK(attached.exitCode == 0);
  CHECK(attached.errors == kj::str(folder, ": finished\n"));
  CHECK(contains(attached.output, kj::str("run ", folder, ": 2 servers and 2 workers")));
  CHECK(contains(attached.output, "Speed: "));
  CHECK(contains(attached.output, readFile(kj::str(folder, "/table.md"))));
  auto alone = train(SHORT);
  CHECK(attached.output.endsWith(
      kj::str("\nweights sha256=", alone.weightsSha256, "  ", folder, "\n")));
  CHECK(attached.output == readFile(kj::str(folder, "/output.txt")));
  // The output of a finished run can be shown again.
  CHECK(call({"attach", folder}).output == attached.output);
}

TEST_CASE("attach returns the exit code of a run that failed or missed an expectation") {
  auto check = [](kj::StringPtr setting, int code, kj::StringPtr end) {
    Detached run(SHORT, kj::str("--set=", setting));
    auto attached = call({"attach", run.folder});
    INFO(attached.output);
    CHECK(attached.exitCode == code);
    CHECK(contains(attached.errors, kj::str(run.folder, ": ", end)));
  };
  check("expect.validation_accuracy={ at_least = 0.999 }", 3, "finished\n");
  check("train.optimizer.learning_rate=1e38", 1, "failed: worker ");
}

TEST_CASE("attach returns the exit code of a run whose table cannot be written") {
  Detached run(SHORT);
  KJ_SYSCALL(::mkdir(kj::str(run.folder, "/table.csv").cStr(), 0777));
  auto attached = call({"attach", run.folder});
  INFO(attached.output);
  CHECK(attached.exitCode == 1);
  CHECK(contains(attached.output, "table.csv: it exists but is not a regular file"));
}

TEST_CASE("Ctrl-C at attach does not end the run, and stop ends it and says how it ended") {
  Detached run(ENDLESS);
  CHECK(contains(run.said, kj::str("`runner stop ", run.folder, "` ends it")));
  // From now on, the folder holds this run.
  CHECK(readFile(kj::str(run.folder, "/experiment.toml")).size() > 0);
  auto resumed = call({"run", ENDLESS, "--folder", run.folder, "--resume"});
  CHECK(resumed.exitCode == 1);
  CHECK(contains(resumed.errors, " works in "));
  auto first = start({"attach", run.folder});
  REQUIRE(first->waitForOutput("Speed: "));
  first->kill(SIGINT);
  auto left = first->wait(FAILS_WITHIN_S);
  CHECK(left.exitCode == 130);
  CHECK(contains(left.errors, kj::str("\nleft ", run.folder, ", which continues. ")));

  auto pid = launcherOf(run.folder);
  auto listed = call({"ps", "--runs", run.runs});
  INFO(listed.output);
  CHECK(listed.exitCode == 0);
  CHECK(contains(listed.output, kj::str("\n| ", run.folder, " | endless | dist_sync | ")));
  CHECK(contains(listed.output, "/1000000 | "));
  CHECK(contains(listed.output, kj::str(" | ", pid, " |\n")));

  auto second = start({"attach", run.folder});
  REQUIRE(second->waitForOutput("Speed: "));
  auto roles = processesWith(kj::str("--folder=", run.folder));
  CHECK(roles.size() == 5);
  auto stopped = call({"stop", run.folder});
  CHECK(stopped.exitCode == 0);
  CHECK(stopped.errors == kj::str(run.folder, ": interrupted: received SIGTERM\n"));
  CHECK(haveEnded(roles, 0));
  CHECK(second->wait(FAILS_WITHIN_S).exitCode == 130);

  auto again = call({"stop", run.folder});
  CHECK(again.exitCode == 0);
  CHECK(again.errors == kj::str(run.folder, " is over: interrupted: received SIGTERM\n"));
  auto none = call({"ps", "--runs", run.runs});
  CHECK(none.exitCode == 0);
  CHECK(none.output == "");
  CHECK(none.errors == kj::str("no run is in progress in ", run.runs, "\n"));
}

TEST_CASE("attach and stop also work on a run of another terminal") {
  auto run = startedRun(ENDLESS);
  auto attached = start({"attach", run->folder});
  CHECK(attached->waitForOutput("Speed: "));
  CHECK(call({"stop", run->folder}).exitCode == 0);
  CHECK(run->command.wait(FAILS_WITHIN_S).exitCode == 130);
  auto ended = attached->wait(FAILS_WITHIN_S);
  CHECK(ended.exitCode == 130);
  CHECK(contains(ended.output, "the job was interrupted: received SIGTERM\n"));
}

TEST_CASE("stop ends a launcher that a signal has stopped, and a coordinator started by hand") {
  Detached run(ENDLESS);
  KJ_SYSCALL(::kill(launcherOf(run.folder), SIGSTOP));
  CHECK(call({"stop", run.folder}).exitCode == 0);

  auto folder = newFolder();
  auto coordinator = startCoordinator(ENDLESS, folder);
  addressOf(*coordinator);
  CHECK(call({"stop", folder}).exitCode == 0);
  CHECK(coordinator->wait(FAILS_WITHIN_S).exitCode == 130);
}

TEST_CASE("a run whose launcher was killed is over, and attach ends with exit code 1") {
  Detached run(ENDLESS);
  auto attached = start({"attach", run.folder});
  REQUIRE(attached->waitForOutput("Speed: "));
  KJ_SYSCALL(::kill(launcherOf(run.folder), SIGKILL));
  auto ended = attached->wait(FAILS_WITHIN_S);
  CHECK(ended.exitCode == 1);
  CHECK(contains(ended.errors, kj::str(run.folder, ": unfinished")));
  auto stopped = call({"stop", run.folder});
  CHECK(stopped.exitCode == 0);
  CHECK(contains(stopped.errors, " is over: unfinished"));
}

TEST_CASE("stop signals no process whose pid is from another machine, container or time") {
  runner::RunFolder folder{newFolder()};
  auto lock = KJ_ASSERT_NONNULL(runner::lockOf(folder));
  auto file = kj::str(folder.path, "/.lock");
  auto own = readFile(file);
  // A process that `runner stop` must not end.
  Command bystander({"sleep", "1000"});
  auto identity = runner::ProcessIdentity::of(bystander.pid());
  auto refuse = [&](kj::StringPtr boot, uint64_t begun_ticks, kj::StringPtr why) {
    writeFile(
        file, kj::str(bystander.pid(), "\nhost node2\nboot ", boot, "\nbegun ", begun_ticks, "\n"));
    auto ended = call({"stop", folder.path});
    checkFailed(ended, {folder.path, why, "Run this command there: `runner stop "});
  };
  refuse("another", identity.begun_ticks, " on node2");
  refuse(identity.boot, identity.begun_ticks + 1, "in another container of this machine");
  Process one[] = {{bystander.pid(), kj::str()}};
  CHECK_FALSE(haveEnded(one, 0));
}

TEST_CASE("ps names a folder that it cannot read, and lists the runs in the others") {
  Detached run(ENDLESS);
  auto closed = kj::str(run.runs, "/closed");
  KJ_SYSCALL(::mkdir(closed.cStr(), 0));
  kj::Vector<kj::StringPtr> words;
  // Otherwise root may read everything.
  if (::getuid() == 0) {
    words.add("setpriv");
    words.add("--bounding-set=-dac_override,-dac_read_search");
  }
  words.addAll(Words({RUNNER, "ps", "--runs", run.runs}));
  auto listed = Command(words).wait();
  KJ_SYSCALL(::chmod(closed.cStr(), 0700));
  CHECK(listed.exitCode == 0);
  CHECK(contains(listed.output, kj::str("| ", run.folder, " | endless | ")));
  CHECK(contains(listed.errors, kj::str("warning: cannot read the folder ", closed)));
}

TEST_CASE("a folder without a run is refused, and the message says what to name") {
  auto folder = newFolder();
  for (auto command: {"attach"_kj, "stop"_kj}) {
    auto ended = call({command, folder});
    CHECK(ended.exitCode == 2);
    CHECK(contains(ended.errors, kj::str("error: there is no run in ", folder)));
    CHECK(contains(ended.errors, "runner ps"));
  }
}

TEST_CASE("a detached sweep is followed, listed and ended as a whole, and can be continued") {
  Detached sweep(ENDLESS, "--sweep=train.seed=1,2");
  CHECK(sweep.folder == kj::str(sweep.runs, "/endless"));
  auto attached = start({"attach", sweep.folder});
  REQUIRE(attached->waitForOutput("sweep 0/2 done"));
  auto pid = launcherOf(sweep.folder);
  auto listed = call({"ps", "--runs", sweep.runs});
  INFO(listed.output);
  CHECK(contains(listed.output, kj::str("| ", sweep.folder, " | (a sweep) |  |  | ")));
  CHECK(countOf(listed.output, kj::str(" | ", pid, " |\n")) >= 2);
  // A second one would write to the same file.
  checkFailed(call({"run", ENDLESS, "--sweep=train.seed=1,2", "--runs", sweep.runs, "--detach"}),
      {kj::str("process ", pid, " works on the sweep in ", sweep.folder, " already")});
  auto held = processesWith(kj::str("--folder=", sweep.folder, "/seed=1"));
  REQUIRE(held.size() > 0);
  auto run = Command({"sh", "-c", kj::str("echo -n ", sweep.folder, "/seed=1-*")}).wait().output;
  checkFailed(
      call({"stop", run}), {" is a run of a sweep", kj::str("`runner stop ", sweep.folder)});
  // Does the same with a path that does not name the sweep.
  auto script = kj::str("p=$(realpath ", RUNNER, ") && cd ", sweep.folder, " && $p stop seed=1-*");
  checkFailed(Command({"sh", "-c", script}).wait(), {" is a run of a sweep"});
  CHECK(call({"stop", sweep.folder}).exitCode == 0);
  auto ended = attached->wait(FAILS_WITHIN_S);
  CHECK(ended.exitCode == 130);
  CHECK(contains(ended.output, "Run the same command to continue"));
  CHECK(call({"attach", run}).exitCode == 130);
}

TEST_CASE("stop ends all processes that share a sweep, but not for one of its runs") {
  auto runs = newFolder();
  auto folder = kj::str(runs, "/endless");
  const kj::StringPtr sweep[] = {
      "run", ENDLESS, "--sweep=train.seed=1,2,3", "--set=sweep.parallel_runs=1", "--runs", runs};
  auto first = start(sweep), second = start(sweep);
  REQUIRE(first->waitForErrors("sweep 0/3 done"));
  REQUIRE(second->waitForErrors("sweep 0/3 done"));
  for (auto role: {"seed=1", "seed=2"}) {
    auto part = kj::str("--folder=", folder, "/", role);
    while (processesWith(part).size() == 0) REQUIRE(second->waitForErrors("sweep", 0));
    auto run = Command({"sh", "-c", kj::str("echo -n ", folder, "/", role, "-*")}).wait().output;
    checkFailed(
        call({"stop", run}), {" is a run of a sweep", kj::str("`runner stop ", folder, "`")});
    CHECK(runner::isHeld({kj::str(run)}));
  }
  CHECK(call({"stop", folder}).exitCode == 0);
  CHECK(first->wait(FAILS_WITHIN_S).exitCode == 130);
  CHECK(second->wait(FAILS_WITHIN_S).exitCode == 130);
}

}  // namespace
}  // namespace tests
