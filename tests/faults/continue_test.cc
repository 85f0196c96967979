// A job with cluster.on_loss = "continue" goes on without workers that it loses, and takes others
// in their place.
#include <capnp/message.h>
#include <doctest/doctest.h>
#include <kj/debug.h>
#include <signal.h>

#include "runner/logs/run_log.h"
#include "tests/faults/failure.h"
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
};

// Starts `file` with three workers, and loses these roles one after the other. Each time, waits
// until somebody has taken the role's place.
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
  }
  return run;
}

// What a run's events tell of its members and its results.
struct Course {
  uint lost = 0;
  uint joined = 0;
  uint least = kj::maxValue;  // workers at a time
  uint started = 0;
  kj::Vector<uint> validated;  // images, by event

  explicit Course(const Run& run) {
    for (auto& line: linesOf(run.read("events.jsonl"))) {
      capnp::MallocMessageBuilder message;
      auto event = message.initRoot<runner::Event>();
      runner::parseEvent(line, event);
      if (event.isStarted()) started++;
      if (event.isValidated()) validated.add(event.getValidated().getImages());
      if (!event.isMembership()) continue;
      auto change = event.getMembership();
      change.getJoined() ? joined++ : lost++;
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
  // Every validation covers all records, whoever was there.
  for (uint images: course.validated) CHECK(images == 10000);
}

TEST_CASE("a job that loses one worker after the other goes on, and others take their places") {
  constexpr Loss LOSSES[] = {
      {"Epoch[2] Batch [100]"_kj, "worker"_kj, 1},
      {"Epoch[4] Batch [200]"_kj, "worker"_kj, 0},
      {"Epoch[6] Batch [300]"_kj, "worker"_kj, 2, SIGSTOP},
  };
  auto run = losing(SHORT, {"train.epochs=12"}, LOSSES);
  checkWentOn(*run, 3);
  auto errors = run->command.errors();
  CHECK(contains(errors, "worker 1 was killed by signal 9 (Killed)"));
  CHECK(contains(errors, "The other workers go on"));
  CHECK(contains(errors, "worker 0 was lost in step "));
  CHECK(contains(errors, ": 2 workers from now on"));
  CHECK(contains(errors, "worker 2 has joined at step "));
}

TEST_CASE("a job goes on over TCP, with compression, as with shared memory") {
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

TEST_CASE("a job that loses a server, or too many workers, goes back to its newest checkpoint") {
  constexpr Loss LOSSES[] = {
      {"Epoch[0] Batch [300]"_kj, "server"_kj, 1},
      {"Epoch[1] Batch [100]"_kj, "worker"_kj, 1},
      {"Epoch[1] Batch [300]"_kj, "coordinator"_kj, 0},
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

TEST_CASE("a job whose members have changed goes on after a break, and ends") {
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
  for (uint images: course.validated) CHECK(images == 10000);
}

}  // namespace
}  // namespace tests
