// Disks that fail while a run is saved or resumed: never a wrong result, and always a plain
// message.
#include <doctest/doctest.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/faults/failure.h"
#include "tests/faults/resumable_run.h"
#include "tests/faults/roles_by_hand.h"
#include "tests/text.h"

namespace tests {
namespace {

// `runner`, linked with failing_disk.cc.
constexpr kj::StringPtr PROGRAM = "tests/faults/runner_on_failing_disk"_kj;
constexpr kj::StringPtr RESUME[] = {"--resume"_kj};

// While this object lives, `call` fails in new programs for paths that contain `part`. A negative
// `error` is a delay instead: see failing_disk.cc.
class FailingDisk {
public:
  FailingDisk(kj::StringPtr call, kj::StringPtr part, int error) {
    ::setenv("FAILING_DISK", kj::str(call, " ", part, " ", error).cStr(), 1);
  }
  ~FailingDisk() { ::unsetenv("FAILING_DISK"); }
  KJ_DISALLOW_COPY(FailingDisk);
};

struct Fault {
  kj::StringPtr call, part;
  int error;
  kj::StringPtr words;  // in the message
};

TEST_CASE("a checkpoint that the disk refuses costs a run nothing but a warning") {
  auto trained = ResumableRun(nullptr, PROGRAM).train();
  const Fault FAULTS[] = {
      {"write", "/checkpoints/step-80/worker-1", EIO, "Input/output error"},
      {"fsync", "/checkpoints/step-80/shard-0", EIO, "Input/output error"},
      {"rename", "/checkpoints/step-80/manifest.json", ENOSPC, "No space left on device"},
      {"write", "/checkpoints/step-80/", EDQUOT, "Disk quota exceeded"},
      {"mkdir", "/checkpoints", EROFS, "Read-only file system"},
      {"fsync", "/1/events.jsonl", EIO, "events.jsonl: Input/output error"},
  };
  for (auto& fault: FAULTS) {
    CAPTURE(fault.call);
    CAPTURE(fault.part);
    ResumableRun run(nullptr, PROGRAM);
    FailingDisk disk(fault.call, fault.part, fault.error);
    auto ended = run.start()->wait();
    INFO(ended.errors);
    CHECK(finished(ended, run.folder).weightsSha256 == trained.weightsSha256);
    CHECK(countOf(ended.errors, "warning: ") == 1);
    CHECK(contains(ended.errors, "warning: saving failed at step "));
    CHECK(contains(ended.errors, fault.words));
    CHECK(contains(ended.errors, ". The run continues, and will try again later\n"));
    auto events = run.read("events.jsonl");
    bool isLasting = !contains(fault.part, "/step-80/");
    CHECK(contains(events, SAVED) == !isLasting);
    CHECK((countOf(events, "\"unsaved\":{") == 1) == !isLasting);
    CHECK(contains(run.read("log.txt"), "saving failed at step "));
    CHECK(contains(run.read("table.md"), ": saving failed "));
  }
}

TEST_CASE("a run whose log, weights or best weights the disk refuses fails with one plain line") {
  const Fault FAULTS[] = {
      {"write", "/1/weights.safetensors", ENOSPC, "weights.safetensors: No space left on device"},
      {"fsync", "/1/best.safetensors", EIO, "best.safetensors: Input/output error"},
      {"write", "/1/events.jsonl", EIO, "events.jsonl: Input/output error"},
      {"write", "/1/log.txt", EROFS, "log.txt: Read-only file system"},
  };
  for (auto& fault: FAULTS) {
    CAPTURE(fault.part);
    ResumableRun run(nullptr, PROGRAM);
    kj::Maybe<FailingDisk> disk;
    disk.emplace(fault.call, fault.part, fault.error);
    auto ended = run.start()->wait();
    INFO(ended.errors);
    CHECK(ended.exitCode == 1);
    CHECK(countOf(ended.errors, "error: ") == 1);
    CHECK(contains(ended.errors, "error: coordinator: cannot write "));
    CHECK(contains(ended.errors, fault.words));
    disk = nullptr;
    // When the disk works again, the run continues.
    run.resume();
  }
}

TEST_CASE("a disk that takes longer than the silence time-out does not harm a run") {
  kj::StringPtr settings[] = {"cluster.silence_timeout_s=1", "train.epochs=1"};
  auto trained = ResumableRun(settings, PROGRAM).train();
  // The run ends while its last checkpoint, that of step 120, is being written.
  for (auto part: {"/1/experiment.toml", "/1/weights.safetensors", "/1/confusion.csv",
           "/checkpoints/step-80/", "/checkpoints/step-120/"}) {
    CAPTURE(part);
    ResumableRun run(settings, PROGRAM);
    FailingDisk disk("fsync", part, -3000);
    auto ended = run.start()->wait();
    INFO(ended.errors);
    CHECK(finished(ended, run.folder).weightsSha256 == trained.weightsSha256);
    CHECK_FALSE(contains(ended.errors, "warning: "));
    CHECK(run.newestCheckpoint().endsWith("/step-120"));
  }
}

TEST_CASE(
    "a run that fails while a slow disk takes a checkpoint names the cause, not what follows") {
  // The first log line is that of step 7.
  kj::StringPtr settings[] = {"checkpoint.every_steps=5"};
  ResumableRun run(settings, PROGRAM);
  // Longer than the launcher waits for a cause.
  FailingDisk disk("fsync", "/checkpoints/step-", -6000);
  auto running = run.start();
  REQUIRE(running->waitForOutput("Epoch"));
  Command({"rm", kj::str(run.folder, "/events.jsonl")}).wait();
  auto ended = running->wait();
  INFO(ended.errors);
  CHECK(ended.exitCode == 1);
  CHECK(countOf(ended.errors, "error: ") == 1);
  CHECK(contains(ended.errors, "events.jsonl, was removed or renamed"));
}

TEST_CASE("a coordinator started by hand ends in time, although a slow disk writes a checkpoint") {
  for (bool isInterrupted: {true, false}) {
    CAPTURE(isInterrupted);
    auto folder = newFolder();
    kj::Own<Command> coordinator;
    {
      FailingDisk disk("fsync", "/checkpoints/step-40/", -60000);
      coordinator =
          startByHand({RESUMABLE, "--role", "coordinator", "--folder", folder}, nullptr, PROGRAM);
    }
    auto address = addressOf(*coordinator);
    kj::Vector<kj::Own<Command>> roles;
    for (uint i: {0, 1}) {
      roles.add(startRole(RESUMABLE, "server", i, address));
      roles.add(startRole(RESUMABLE, "worker", i, address));
    }
    // The workers stop at step 80, until the first checkpoint is written.
    REQUIRE(coordinator->waitForOutput("Batch [77]"));
    if (isInterrupted) {
      coordinator->kill(SIGINT);
    } else {
      roles.back()->kill(SIGKILL);
    }
    auto ended = coordinator->wait(FAILS_WITHIN_S);
    INFO(ended.errors);
    CHECK(ended.exitCode == (isInterrupted ? 130 : 1));
    CHECK(contains(readFile(kj::str(folder, "/events.jsonl")),
        isInterrupted ? "\"interrupted\":" : "\"failed\":"));
    for (auto& role: roles) CHECK(role->wait(FAILS_WITHIN_S).exitCode != 0);
  }
}

TEST_CASE("a checkpoint that cannot be read is named, and the one before is used") {
  auto trained = ResumableRun(nullptr, PROGRAM).train();
  for (auto name: {"manifest.json", "worker-0.safetensors"}) {
    CAPTURE(name);
    ResumableRun run(nullptr, PROGRAM);
    run.trainUntil(SAVED, 3);
    auto newest = run.newestCheckpoint();
    Ended ended;
    {
      FailingDisk disk("read", kj::str(newest, "/", name), EIO);
      ended = run.start(RESUME)->wait();
    }
    INFO(ended.errors);
    CHECK(contains(ended.errors, kj::str("the checkpoint ", newest, " is not used: ")));
    CHECK(contains(ended.errors, "Input/output error"));
    CHECK(finished(ended, run.folder).weightsSha256 == trained.weightsSha256);
  }
}

TEST_CASE(
    "a run that cannot continue with other numbers, because the disk is full, leaves no run") {
  kj::StringPtr settings[] = {"checkpoint.every_steps=150"};  // the steps of an epoch
  ResumableRun run(settings, PROGRAM);
  run.trainUntil(SAVED, 1);
  const kj::StringPtr WORDS[] = {"--resume", "--set", "cluster.workers=3"};
  auto second = kj::str(run.runs, "/resumable/2");
  {
    FailingDisk disk("write", "/2/checkpoints/", ENOSPC);
    auto ended = run.start(WORDS)->wait();
    INFO(ended.errors);
    CHECK(ended.exitCode != 0);
    CHECK(contains(ended.errors, "No space left on device"));
  }
  CHECK(::access(second.cStr(), F_OK) != 0);
  CHECK(::access(kj::str(run.runs, "/resumable/last/events.jsonl").cStr(), F_OK) == 0);
  auto ended = run.start(WORDS)->wait();
  INFO(ended.errors);
  CHECK(ended.exitCode == 0);
  CHECK(::access(kj::str(second, "/weights.safetensors").cStr(), F_OK) == 0);
}

TEST_CASE("a finished run whose weights cannot be read is left as it is") {
  kj::StringPtr settings[] = {"train.epochs=1"};
  ResumableRun run(settings, PROGRAM);
  auto trained = run.train();
  auto events = run.read("events.jsonl");
  const kj::StringPtr again[] = {"--folder", run.folder};
  for (kj::ArrayPtr<const kj::StringPtr> words:
      {kj::arrayPtr(RESUME, kj::size(RESUME)), kj::arrayPtr(again, kj::size(again))}) {
    FailingDisk disk("read", "/1/weights.safetensors", EIO);
    auto ended = run.start(words)->wait();
    INFO(ended.errors);
    CHECK((ended.exitCode == 1 || ended.exitCode == 2));
    CHECK(contains(ended.errors, "weights.safetensors: Input/output error"));
    CHECK(run.read("events.jsonl") == events);
  }
  CHECK(contains(run.start(again)->wait().errors, "has already finished"));
}

TEST_CASE(
    "a run whose checkpoints are all damaged begins again, and keeps them under other names") {
  auto trained = ResumableRun(nullptr).train();
  ResumableRun run(nullptr);
  run.trainUntil(SAVED, 3);
  auto script = "for f in \"$0\"/step-*/manifest.json; do echo >>\"$f\"; done"_kj;
  Command({"sh", "-c", script, kj::str(run.folder, "/checkpoints")}).wait();
  auto ended = run.start(RESUME)->wait();
  INFO(ended.errors);
  CHECK(countOf(ended.errors, " is not used: its manifest is damaged") == 2);
  CHECK(finished(ended, run.folder).weightsSha256 == trained.weightsSha256);
  auto left = Command({"ls", kj::str(run.folder, "/checkpoints")}).wait().output;
  CHECK(countOf(left, ".refused\n") == 2);
  CHECK(contains(run.read("events.jsonl"), "\"started\":{"));
}

TEST_CASE("a run whose events are damaged before a checkpoint is not resumed from there") {
  auto trained = ResumableRun(nullptr).train();
  ResumableRun run(nullptr);
  run.trainUntil(SAVED, 3);
  auto events = run.read("events.jsonl");
  // Changes a figure of the first steps. No checkpoint is older.
  auto at = ::strstr(events.cStr(), "\"accuracy\":") - events.begin() + 13;
  events[at] = events[at] == '1' ? '2' : '1';
  writeFile(kj::str(run.folder, "/events.jsonl"), events);
  auto ended = run.start(RESUME)->wait();
  INFO(ended.errors);
  CHECK(countOf(ended.errors, " is not used: the run's events.jsonl is damaged") == 2);
  CHECK(finished(ended, run.folder).weightsSha256 == trained.weightsSha256);
}

TEST_CASE("a run that was killed before its first event leaves its folder to --resume") {
  ResumableRun run(nullptr);
  auto trained = run.train();
  for (auto name: {"events.jsonl"_kj, "weights.safetensors"_kj}) {
    Command({"rm", kj::str(run.folder, "/", name)}).wait();
  }
  // The launcher has written this file. The coordinator adds the instruction set later.
  auto file = kj::str(run.folder, "/experiment.toml");
  Command({"sed", "-i", "s/^instruction_set = .*/instruction_set = \"auto\"/", file}).wait();
  CHECK(run.resume().weightsSha256 == trained.weightsSha256);
}

TEST_CASE("of two runs in one folder, the second is refused and disturbs nothing") {
  auto undisturbed = ResumableRun(nullptr).train();
  ResumableRun run(nullptr);
  kj::StringPtr words[] = {"--folder", run.folder};
  kj::StringPtr resume[] = {"--folder", run.folder, "--resume"};
  auto first = run.start(words);
  REQUIRE(first->waitForOutput("Epoch"));
  kj::ArrayPtr<const kj::StringPtr> others[] = {
      kj::arrayPtr(words, 2), kj::arrayPtr(resume, 3), RESUME};
  for (auto more: others) {
    auto second = run.start(more)->wait();
    INFO(second.errors);
    // The first one may have finished before the last of them began.
    if (second.exitCode == 0) {
      CHECK(contains(second.errors, "finished"));
      continue;
    }
    CHECK(second.exitCode == 1);
    CHECK(contains(second.errors,
        kj::str("error: process ", first->pid(), " works in ", run.folder, "; wait until")));
  }
  CHECK(finished(first->wait(), run.folder).weightsSha256 == undisturbed.weightsSha256);
}

TEST_CASE("a run whose file system has no locks is seen, stopped and resumed like any other") {
  auto undisturbed = ResumableRun(nullptr).train();
  ResumableRun run(nullptr, PROGRAM);
  FailingDisk disk("flock", "/.lock", ENOLCK);
  auto first = run.start();
  REQUIRE(first->waitForOutput("Speed: "));
  // The run must not end before the others have begun.
  first->kill(SIGSTOP);
  auto second = run.start(RESUME)->wait();
  INFO(second.errors);
  CHECK(second.exitCode == 1);
  CHECK(contains(second.errors,
      kj::str("error: process ", first->pid(), " works in ", run.folder, "; wait until")));
  auto stopped = Command({PROGRAM, "stop", run.folder}).wait();
  INFO(stopped.errors);
  CHECK(stopped.exitCode == 0);
  CHECK(contains(stopped.errors, kj::str(run.folder, ": interrupted")));
  auto ended = first->wait();
  CHECK(ended.exitCode == 130);
  CHECK(countOf(ended.errors, " has no locks, so only ") == 1);
  run.killAfter(SAVED, 2, RESUME);
  CHECK(run.resume().weightsSha256 == undisturbed.weightsSha256);
}

TEST_CASE(
    "of two --resume of one run at the same moment, one continues and the result is the same") {
  auto undisturbed = ResumableRun(nullptr).train();
  ResumableRun run(nullptr);
  run.trainUntil(SAVED, 2);
  auto first = run.start(RESUME), second = run.start(RESUME);
  uint done = 0;
  for (auto& ended: {first->wait(), second->wait()}) {
    INFO(ended.errors);
    CHECK((ended.exitCode == 0 || contains(ended.errors, " works in ")));
    done += ended.exitCode == 0;
  }
  CHECK(done >= 1);
  CHECK(contains(run.read("events.jsonl"), undisturbed.weightsSha256));
  CHECK(countOf(run.read("events.jsonl"), "\"finished\":{") == 1);
}

}  // namespace
}  // namespace tests
