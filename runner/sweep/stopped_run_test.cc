#include "runner/sweep/stopped_run.h"

#include <capnp/message.h>
#include <doctest/doctest.h>
#include <kj/debug.h>
#include <kj/function.h>
#include <stdlib.h>
#include <unistd.h>

#include "runner/logs/run_log.h"
#include "runner/logs/run_record.h"
#include "runner/system/files.h"
#include "tests/text.h"

namespace runner {
namespace {

using tests::contains;

constexpr uint64_t TEXT_BYTES_MAX = 1 << 20;

// A run of two workers in its own folder.
struct TestRun {
  LoadedExperiment loaded;
  HeldRunFolder held;
  RunLog log;

  explicit TestRun(kj::StringPtr name)
      : loaded(loadExperiment("configs/fashion_mnist_dist_sync.toml", nullptr)),
        held({kj::str(::getenv("TEST_TMPDIR"), "/", name)}),
        log(held.folder, *KJ_ASSERT_NONNULL(loaded.experiment).log.style, RunLog::toNobody(),
            TensorBoard(held.folder.tensorboard())) {
    append(0, 0, [](Event::Builder event) { event.initStarted().setDigest("abc"); });
  }

  void append(double time_s, uint worker, kj::FunctionParam<void(Event::Builder)> fill) {
    capnp::MallocMessageBuilder message;
    auto event = message.initRoot<Event>();
    event.setTimeS(1.5e9 + time_s);
    event.setRole(Role::WORKER);
    event.setIndex(worker);
    fill(event);
    log.append(event);
  }

  // Adds the events of both workers for an epoch.
  void epoch(uint epoch) {
    for (uint worker: {0, 1}) {
      append(10 * epoch, worker, [&](Event::Builder event) {
        event.initSpeed().setEpoch(epoch);
        event.getSpeed().setBatch(50);
      });
      append(10 * epoch + 1, worker, [&](Event::Builder event) {
        event.initTrained().setEpoch(epoch);
        event.getTrained().setImages(100);
      });
    }
    for (uint worker: {0, 1}) {
      append(10 * epoch + 2, worker, [&](Event::Builder event) {
        event.initValidated().setEpoch(epoch);
        event.getValidated().setAccuracy(0.1 + epoch / 3.0);
      });
    }
  }

  void finish() {
    append(90, 0, [](Event::Builder event) { event.initEnded().setStep(300); });
    append(91, 0, [](Event::Builder event) {
      event.setRole(Role::COORDINATOR);
      event.initFinished().setWeightsSha256("def");
    });
    writeWhole(held.folder.weights(), "weights");
  }

  void stop() {
    recordStop(held, loaded, {1, kj::str("{ kind = \"asha\" }"), kj::str("it was behind")});
  }

  kj::String read(kj::String path) const { return readWhole(path, TEXT_BYTES_MAX); }
  // Returns the only file of the curve.
  kj::String curve(kj::StringPtr name) const {
    return read(kj::str(held.folder.tensorboard(), "/", name, "/events.out.tfevents.15000000",
        name == "validation" ? "12" : "10", ".runner"));
  }
};

TEST_CASE(
    "recordStop: a run that was taken down late leaves the same files as one taken down at once") {
  TestRun prompt("prompt");
  prompt.epoch(1);
  prompt.stop();

  TestRun late("late");
  late.epoch(1);
  late.append(13, 0, [](Event::Builder event) { event.initBadRecord().setReason("no JPEG"); });
  late.epoch(2);
  late.epoch(3);
  late.finish();
  late.stop();

  auto& first = prompt.held.folder;
  auto& second = late.held.folder;
  CHECK(prompt.read(first.events()) == late.read(second.events()));
  CHECK(prompt.read(first.log()) == late.read(second.log()));
  CHECK(prompt.read(first.experiment()) == late.read(second.experiment()));
  for (uint worker: {0, 1}) {
    CHECK(prompt.read(first.roleLog("worker", worker)) ==
          late.read(second.roleLog("worker", worker)));
  }
  CHECK(prompt.curve("worker-0") == late.curve("worker-0"));
  CHECK(prompt.curve("validation") == late.curve("validation"));
  CHECK(::access(second.weights().cStr(), F_OK) != 0);
}

TEST_CASE("recordStop: events up to the rung stay, and every file says how the run ended") {
  TestRun run("kept");
  run.append(0, 0, [](Event::Builder event) { event.initAgreed().setInstructionSet("avx2"); });
  run.append(1, 1, [](Event::Builder event) { event.initBadRecord().setReason("no JPEG"); });
  run.epoch(1);
  auto events = run.read(run.held.folder.events());
  auto log = run.read(run.held.folder.log());
  run.epoch(2);
  run.stop();
  CHECK(run.read(run.held.folder.events()).startsWith(events));
  CHECK(run.read(run.held.folder.log()) == log);
  CHECK(contains(run.read(run.held.folder.roleLog("worker", 0)),
      "worker 0: the job was stopped: it was behind\n"));

  auto record = readRunRecord(run.held.folder.path);
  CHECK(record.state == RunRecord::STOPPED);
  CHECK(record.reason == "it was behind");
  CHECK(record.rule == "{ kind = \"asha\" }");
  CHECK(record.digest == "abc");
  CHECK(record.instructionSet == "avx2");
  CHECK(contains(run.read(run.held.folder.experiment()), "\ninstruction_set = \"avx2\"\n"));
  CHECK(record.epochRecords.size() == 1);
}

TEST_CASE("recordStop: leaves out which epoch was best, because its weights are removed") {
  TestRun run("best");
  run.append(1, 0, [](Event::Builder event) { event.initBest().setEpoch(1); });
  run.epoch(1);
  CHECK(contains(run.read(run.held.folder.events()), "\"best\""));
  run.stop();
  CHECK(!contains(run.read(run.held.folder.events()), "\"best\""));
}

TEST_CASE("recordStop: leaves out what a faster worker did in the next epoch") {
  TestRun run("faster");
  run.append(1, 0, [](Event::Builder event) { event.initTrained().setEpoch(1); });
  run.append(2, 0, [](Event::Builder event) { event.initTrained().setEpoch(2); });
  run.append(3, 1, [](Event::Builder event) { event.initTrained().setEpoch(1); });
  run.stop();
  auto record = readRunRecord(run.held.folder.path);
  REQUIRE(record.epochRecords.size() == 1);
  CHECK(record.epochRecords[0].workers == 2);
}

}  // namespace
}  // namespace runner
