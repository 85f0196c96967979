// A job with cluster.on_loss = "continue" continues without lost workers, and takes others in their
// place.
#include <capnp/message.h>
#include <doctest/doctest.h>
#include <kj/debug.h>
#include <signal.h>
#include <string.h>

#include "runner/logs/confusion_file.h"
#include "runner/logs/events.h"
#include "tests/faults/failure.h"
#include "tests/skip.h"
#include "tests/text.h"

namespace tests {
namespace {

constexpr kj::StringPtr SHORT = "tests/faults/short.toml"_kj;
constexpr kj::StringPtr CONTINUES = "cluster.on_loss=continue"_kj;
constexpr kj::StringPtr AGAIN = "All roles are started again"_kj;

struct Loss {
  kj::StringPtr after;  // a line of the log
  kj::StringPtr role;
  uint index;
  int signal = SIGKILL;
  bool isReplaced = true;  // by another worker, while the others continue
};

// Starts `file` with three workers, and kills these roles one after the other. Each time, waits
// until another role has taken the place.
kj::Own<Run> losing(kj::StringPtr file, Words settings, kj::ArrayPtr<const Loss> losses) {
  kj::Vector<kj::StringPtr> all;
  all.addAll(kj::ArrayPtr<const kj::StringPtr>(
      {CONTINUES, "cluster.workers=3", "cluster.silence_timeout_s=2"}));
  all.addAll(settings);
  auto run = kj::heap<Run>(file, all);
  for (auto& loss: losses) {
    CAPTURE(loss.after);
    bool came = run->command.waitForOutput(loss.after);
    INFO(run->command.errors());
    REQUIRE(came);
    KJ_SYSCALL(::kill(run->role(loss.role, loss.index).pid, loss.signal));
    if (!loss.isReplaced) continue;
    auto joined = kj::str(loss.role, ' ', loss.index, " has joined at step ");
    REQUIRE(run->command.waitForErrors(joined));
  }
  return run;
}

// The members and the results of a run, according to its events.
struct Course {
  uint lost = 0;
  uint left = 0;  // on purpose; leftAmid: those of them that did not complete a push
  uint leftAmid = 0;
  uint joined = 0;
  uint least = kj::maxValue;  // workers at a time
  uint started = 0;
  kj::Vector<uint> validated;  // images, by event
  kj::Vector<double> pushed;   // slices, until the end of each epoch
  kj::Vector<uint> lostUntil;  // workers, until then

  explicit Course(const Run& run) {
    for (auto& line: linesOf(run.read("events.jsonl"))) {
      capnp::MallocMessageBuilder message;
      auto event = message.initRoot<runner::Event>();
      runner::parseEvent(line, event);
      if (event.isStarted()) started++;
      if (event.isValidated()) validated.add(event.getValidated().getImages());
      if (event.isCounted()) {
        auto counted = event.getCounted();
        if (counted.getEpoch() > pushed.size()) {
          pushed.add(0);
          lostUntil.add(lost);
        }
        pushed.back() += counted.getPushes().getPushed();
      }
      if (!event.isMembership()) continue;
      auto change = event.getMembership();
      change.getJoined() ? joined++ : lost++;
      left += change.getLeft();
      leftAmid += change.getLeft() && change.getHeld().size() > 0;
      least = kj::min(least, change.getWorkers());
    }
  }
};

void checkWentOn(Run& run, uint losses) {
  auto ended = run.command.wait();
  INFO(ended.errors);
  CHECK(ended.exitCode == 0);
  CHECK(contains(ended.output, "weights sha256="));
  CHECK_FALSE(contains(ended.errors, AGAIN));
  checkNothingLeft(run);
  Course course(run);
  CHECK(course.started == 1);
  CHECK(course.lost == losses);
  CHECK(course.joined == losses);
  CHECK(course.least == 2);
  // Every validation covers all records, whichever workers were members.
  REQUIRE(course.validated.size() > 0);
  for (uint images: course.validated) CHECK(images == 10000);
  uint64_t images = 0;
  for (auto& cell: runner::parseConfusion(run.read("confusion.csv"), "confusion.csv")) {
    images += cell.images;
  }
  CHECK(images == 10000);
}

TEST_CASE("a job that loses one worker after the other continues, and others take their places") {
  constexpr Loss LOSSES[] = {
      {"Epoch[2] Batch [100]"_kj, "worker"_kj, 1},
      {"Epoch[4] Batch [200]"_kj, "worker"_kj, 0},
      {"Epoch[6] Batch [300]"_kj, "worker"_kj, 2, SIGSTOP},
  };
  auto run = losing(SHORT, {"train.epochs=12"}, LOSSES);
  checkWentOn(*run, 3);
  auto errors = run->command.errors();
  CHECK(contains(errors, "worker 1 was killed by signal 9 (Killed)"));
  CHECK(contains(errors, "The other workers continue"));
  CHECK(contains(errors, "worker 0 was lost in step "));
  CHECK(contains(errors, ": 2 workers from now on"));
  CHECK(contains(errors, "worker 2 has joined at step "));
}

TEST_CASE("a job that loses workers also continues over TCP with compression") {
  constexpr Loss LOSSES[] = {
      {"Epoch[2] Batch [100]"_kj, "worker"_kj, 2},
      {"Epoch[4] Batch [100]"_kj, "worker"_kj, 0},
  };
  auto run = losing(SHORT,
      {"train.epochs=8", "kvstore.transport=tcp",
          "kvstore.compression={kind='2bit',threshold=0.01}"},
      LOSSES);
  checkWentOn(*run, 2);
}

// Checks that each batch of every epoch was pushed once. The first epoch had no loss.
void checkUsedOnce(const Run& run, uint batches) {
  Course course(run);
  REQUIRE(course.pushed.size() > 1);
  uint slices = uint(course.pushed[0] / batches);
  CHECK(slices * batches == course.pushed[0]);
  for (size_t i: kj::indices(course.pushed)) {
    CAPTURE(i);
    double all = (i + 1) * batches;
    CHECK(course.pushed[i] <= slices * all);
    // Batches that do not fill a step of all workers are read in the next epoch. A lost worker may
    // have pushed only some slices of a batch.
    CHECK(course.pushed[i] > slices * (all - 3 - course.lostUntil[i]));
  }
}

TEST_CASE("in asynchronous modes, the others take over the epoch of a lost worker") {
  constexpr Loss LOSSES[] = {
      {"Epoch[1] Batch [100]"_kj, "worker"_kj, 1},
      {"Epoch[3] Batch [100]"_kj, "worker"_kj, 0, SIGTERM},
      {"Epoch[5] Batch [100]"_kj, "worker"_kj, 2, SIGSTOP},
  };
  constexpr kj::StringPtr ASYNC[] = {
      "kvstore.mode=dist_async"_kj, "train.epochs=9"_kj, "checkpoint.every_s=1"_kj};
  constexpr kj::StringPtr BOUNDED[] = {"kvstore.mode=dist_ssp"_kj, "kvstore.staleness=2"_kj,
      "train.epochs=9"_kj, "kvstore.transport=tcp"_kj};
  constexpr kj::StringPtr COMPENSATED[] = {"kvstore.mode=dc_asgd"_kj, "train.epochs=9"_kj};
  const Words MODES[] = {ASYNC, BOUNDED, COMPENSATED};
  for (auto settings: MODES) {
    CAPTURE(settings[0]);
    auto run = losing(SHORT, settings, LOSSES);
    checkWentOn(*run, 3);
    checkUsedOnce(*run, 1200);
    CHECK(Course(*run).left == 1);
  }
}

TEST_CASE("a dist_ssp job that lost a worker continues after all roles are started again") {
  constexpr Loss LOSSES[] = {{"Epoch[1] Batch [100]"_kj, "worker"_kj, 1, SIGKILL, false},
      {"Epoch[1] Batch [300]"_kj, "server"_kj, 0, SIGKILL, false}};
  auto run = losing(
      SHORT, {"kvstore.mode=dist_ssp", "train.epochs=5", "checkpoint.every_steps=40"}, LOSSES);
  auto ended = run->command.wait();
  INFO(ended.errors);
  CHECK(ended.exitCode == 0);
  CHECK(countOf(ended.errors, AGAIN) == 1);
  checkNothingLeft(*run);
  checkUsedOnce(*run, 1200);
  CHECK(Course(*run).joined == Course(*run).lost);
}

TEST_CASE("a job that loses a server, or too many workers, goes back to its newest checkpoint") {
  constexpr Loss LOSSES[] = {
      {"Epoch[0] Batch [300]"_kj, "server"_kj, 1, SIGKILL, false},
      {"Epoch[1] Batch [100]"_kj, "worker"_kj, 1, SIGKILL, false},
      {"Epoch[1] Batch [300]"_kj, "coordinator"_kj, 0, SIGKILL, false},
  };
  constexpr kj::StringPtr FEW[] = {"cluster.workers=3"_kj};
  auto alone = train(SHORT, FEW);
  auto run = losing(SHORT, {"cluster.elastic={min=3}", "checkpoint.every_steps=50"}, LOSSES);
  auto ended = run->command.wait();
  INFO(ended.errors);
  CHECK(ended.exitCode == 0);
  CHECK(contains(ended.output, alone.weightsSha256));
  CHECK(countOf(ended.errors, AGAIN) == 3);
  checkNothingLeft(*run);
  CHECK(Course(*run).lost == 0);
}

TEST_CASE("a job whose members have changed continues after all roles are started again") {
  constexpr Loss LOSSES[] = {{"Epoch[2] Batch [100]"_kj, "worker"_kj, 1}};
  auto run = losing(SHORT, {"train.epochs=10", "checkpoint.every_steps=50"}, LOSSES);
  REQUIRE(run->command.waitForOutput("Epoch[4] Batch [100]"));
  KJ_SYSCALL(::kill(run->role("server", 0).pid, SIGKILL));
  auto ended = run->command.wait();
  INFO(ended.errors);
  CHECK(ended.exitCode == 0);
  CHECK(countOf(ended.errors, AGAIN) == 1);
  checkNothingLeft(*run);
  Course course(*run);
  CHECK(course.lost == 1);
  CHECK(course.joined == 1);
  REQUIRE(course.validated.size() > 0);
  for (uint images: course.validated) CHECK(images == 10000);
}

// Returns the `membership` events without their times.
kj::String changesOf(kj::StringPtr events) {
  kj::Vector<kj::StringPtr> changes;
  constexpr kj::StringPtr MARK = "\"index\":"_kj;
  auto lines = linesOf(events);
  for (auto& line: lines) {
    if (!contains(line, "\"membership\":{")) continue;
    auto at = ::strstr(line.cStr(), MARK.cStr());
    KJ_REQUIRE(at != nullptr, line);
    changes.add(at);
  }
  return kj::strArray(changes, "\n");
}

// Runs `file` with three workers, which are lost and join as in the run in `folder`.
Trained repeat(kj::StringPtr file, kj::StringPtr folder, Words settings) {
  auto runs = newFolder();
  auto cache = cacheSetting();
  kj::StringPtr environment[] = {cache};
  kj::Vector<kj::StringPtr> words;
  words.addAll(kj::ArrayPtr<const kj::StringPtr>({RUNNER, "run", file, "--runs", runs,
      "--membership", folder, "--set", CONTINUES, "--set", "cluster.workers=3"}));
  for (auto setting: settings) {
    words.add("--set");
    words.add(setting);
  }
  auto name = file.slice(KJ_ASSERT_NONNULL(file.findLast('/')) + 1);
  auto stem = kj::str(name.slice(0, name.size() - kj::StringPtr(".toml").size()));
  auto ended = Command(words.asPtr(), {.environment = environment}).wait();
  return finished(ended, kj::str(runs, "/", stem, "/1"));
}

TEST_CASE("a run that is interrupted does not record its workers as lost") {
  Run run(SHORT, {CONTINUES, "cluster.workers=3", "train.epochs=1000"});
  REQUIRE(run.command.waitForOutput("Speed: "));
  run.command.kill(SIGTERM);
  CHECK(run.command.wait().exitCode == 130);
  auto events = run.read("events.jsonl");
  CHECK(contains(events, "\"interrupted\":{"));
  CHECK_FALSE(contains(events, "\"membership\":{"));
}

TEST_CASE("a run that repeats the losses and joins of another run trains the same weights") {
  constexpr Loss LOSSES[] = {
      {"Epoch[0] Batch [60]"_kj, "worker"_kj, 0},
      {"Epoch[0] Batch [200]"_kj, "worker"_kj, 2},
  };
  constexpr kj::StringPtr FILE = "tests/faults/losses.toml"_kj;
  constexpr kj::StringPtr SETTINGS[] = {"train.steps=900"_kj, "kvstore.slice_bytes=4096"_kj};
  auto run = losing(FILE, SETTINGS, LOSSES);
  checkWentOn(*run, 2);
  auto again = repeat(FILE, run->folder, SETTINGS);
  CHECK(contains(run->command.output(), again.weightsSha256));
  CHECK(changesOf(readFile(kj::str(again.folder, "/events.jsonl"))) ==
        changesOf(run->read("events.jsonl")));
}

TEST_CASE("a run that repeats a join, and restarts from its checkpoint, repeats the join again") {
  constexpr Loss LOSSES[] = {{"Epoch[0] Batch [60]"_kj, "worker"_kj, 1}};
  constexpr kj::StringPtr FILE = "tests/faults/losses.toml"_kj;
  constexpr kj::StringPtr SETTINGS[] = {"train.steps=900"_kj};
  auto run = losing(FILE, SETTINGS, LOSSES);
  checkWentOn(*run, 1);
  auto runs = newFolder();
  auto cache = cacheSetting();
  kj::StringPtr environment[] = {cache};
  Command again({RUNNER, "run", FILE, "--runs", runs, "--membership", run->folder, "--set",
                    CONTINUES, "--set", "cluster.workers=3", "--set", SETTINGS[0]},
      {.environment = environment});
  REQUIRE(again.waitForErrors("worker 1 has joined at step "));
  auto folder = kj::str(runs, "/losses/1");
  // The checkpoint at the step of the join is the only one.
  REQUIRE(again.waitForOutput("Epoch[0] Batch [400]"));
  kj::Maybe<pid_t> server;
  for (auto& role: processesWith(kj::str("--folder=", folder))) {
    if (contains(role.commandLine, "--role=server")) server = role.pid;
  }
  KJ_SYSCALL(::kill(KJ_REQUIRE_NONNULL(server), SIGKILL));
  auto ended = again.wait();
  INFO(ended.errors);
  CHECK(contains(ended.errors, kj::str(AGAIN, ", from the newest checkpoint")));
  CHECK_FALSE(contains(ended.errors, "warning: "));
  CHECK(contains(run->command.output(), finished(ended, folder).weightsSha256));
  auto events = readFile(kj::str(folder, "/events.jsonl"));
  CHECK(contains(events, "\"continued\":{"));
  CHECK(changesOf(events) == changesOf(run->read("events.jsonl")));
}

TEST_CASE("a worker that receives SIGTERM leaves after its step, and another run repeats that") {
  constexpr Loss LOSSES[] = {
      {"Epoch[0] Batch [60]"_kj, "worker"_kj, 2, SIGTERM},
      {"Epoch[0] Batch [200]"_kj, "worker"_kj, 0, SIGTERM},
  };
  constexpr kj::StringPtr FILE = "tests/faults/losses.toml"_kj;
  constexpr kj::StringPtr SETTINGS[] = {"train.steps=900"_kj, "kvstore.slice_bytes=4096"_kj};
  auto run = losing(FILE, SETTINGS, LOSSES);
  checkWentOn(*run, 2);
  Course course(*run);
  CHECK(course.left == 2);
  CHECK(course.leftAmid == 0);
  auto errors = run->command.errors();
  CHECK(contains(errors, "worker 2 received SIGTERM"));
  CHECK(contains(errors, "worker 0 has left before step "));
  auto again = repeat(FILE, run->folder, SETTINGS);
  CHECK(contains(run->command.output(), again.weightsSha256));
  CHECK(changesOf(readFile(kj::str(again.folder, "/events.jsonl"))) ==
        changesOf(run->read("events.jsonl")));
}

TEST_CASE("a job that cannot do without the worker that leaves goes back to its checkpoint") {
  constexpr Loss LOSSES[] = {{"Epoch[1] Batch [100]"_kj, "worker"_kj, 1, SIGTERM, false}};
  auto run = losing(SHORT, {"cluster.elastic={min=3}", "checkpoint.every_steps=50"}, LOSSES);
  auto ended = run->command.wait();
  INFO(ended.errors);
  CHECK(ended.exitCode == 0);
  CHECK(countOf(ended.errors, AGAIN) == 1);
  CHECK(contains(ended.errors, "worker 1 received SIGTERM"));
  checkNothingLeft(*run);
  CHECK(Course(*run).lost == 0);
}

TEST_CASE("a run repeats losses after a partial push, and a loss at the end of an epoch") {
  constexpr kj::StringPtr FILE = "tests/faults/losses.toml"_kj;
  constexpr kj::StringPtr SETTINGS[] = {
      "train.steps=1400"_kj, "data.batch_size=50"_kj, "kvstore.slice_bytes=4096"_kj};
  // With these changes, epoch 1 has 419 steps. Worker 0 is lost before the workers meet at its end.
  auto plan = newFolder();
  auto event = [](uint rank, uint epoch, uint step, bool joins, kj::StringPtr held, uint workers) {
    return kj::str(R"({"time_s":1,"role":"worker","index":)", rank, R"(,"membership":{"epoch":)",
        epoch, R"(,"step":)", step, R"(,"joined":)", joins ? "true" : "false", R"(,"held":")", held,
        R"(","workers":)", workers, R"(,"left":false,"from":0}})", '\n');
  };
  auto events = kj::str(event(1, 1, 40, false, "1-2,4", 2), event(1, 1, 100, true, "", 3),
      event(0, 1, 419, false, "", 2), event(0, 2, 500, true, "", 3),
      event(2, 2, 501, false, "0,3", 2));
  writeFile(kj::str(plan, "/events.jsonl"), events);
  auto first = repeat(FILE, plan, SETTINGS);
  auto told = readFile(kj::str(first.folder, "/events.jsonl"));
  CHECK(changesOf(told) == changesOf(events));
  CHECK(repeat(FILE, first.folder, SETTINGS).weightsSha256 == first.weightsSha256);
}

TEST_CASE("a run that repeats members continues only with them, and any other run without them") {
  auto plan = newFolder();
  writeFile(kj::str(plan, "/events.jsonl"),
      R"({"time_s":1,"role":"worker","index":1,"membership":{"epoch":1,"step":10,"joined":false,)"
      R"("held":"","workers":2,"left":false,"from":0}})"
      "\n");
  auto folder = newFolder();
  auto cache = cacheSetting();
  auto begin = [&](Words more) {
    kj::Vector<kj::StringPtr> words;
    words.addAll(kj::ArrayPtr<const kj::StringPtr>({RUNNER, "run", SHORT, "--folder", folder,
        "--set", CONTINUES, "--set", "cluster.workers=3", "--set", "train.epochs=1000"}));
    words.addAll(more);
    kj::StringPtr environment[] = {cache};
    return kj::heap<Command>(words.asPtr(), Command::Surroundings{.environment = environment});
  };
  auto train = [&](Words more) {
    auto command = begin(more);
    REQUIRE(command->waitForOutput("Speed: "));
    command->kill(SIGTERM);
    CHECK(command->wait().exitCode == 130);
  };
  train({"--membership", plan});
  for (int i = 0; i < 2; i++) {
    auto ended = begin({"--resume"})->wait();
    checkFailed(ended, {"Name that run again with --membership RUN"});
  }
  train({"--membership", plan, "--resume"});
  // A run that ended before it began leaves only its lock.
  auto lock = readFile(kj::str(folder, "/.lock"));
  CHECK(contains(lock, "repeats members"));
  folder = newFolder();
  writeFile(kj::str(folder, "/.lock"), lock);
  train({"--resume"});
  train({"--resume"});
}

}  // namespace
}  // namespace tests
