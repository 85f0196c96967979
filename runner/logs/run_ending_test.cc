#include "runner/logs/run_ending.h"

#include <capnp/message.h>
#include <doctest/doctest.h>
#include <kj/debug.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "runner/logs/run_record.h"
#include "tests/text.h"

namespace runner {
namespace {

using tests::contains;

constexpr uint64_t TEXT_BYTES_MAX = 1 << 20;

RunFolder newFolder(kj::StringPtr name) {
  RunFolder folder{kj::str(::getenv("TEST_TMPDIR"), "/", name)};
  REQUIRE(::mkdir(folder.path.cStr(), 0777) == 0);
  return folder;
}

// Makes the files that the coordinator of a killed job leaves after one worker has joined.
RunFolder brokenRun(kj::StringPtr name) {
  auto folder = newFolder(name);
  RunLog log(folder, LOG_STYLES[0], RunLog::toNobody());
  capnp::MallocMessageBuilder message;
  auto event = message.initRoot<Event>();
  event.initStarted().setName("broken");
  log.append(event);
  event.setRole(Role::WORKER);
  event.initJoined().setPid(42);
  log.append(event);
  return folder;
}

TEST_CASE("recordEnding: every log of the run states the reason, and readRunRecord() returns it") {
  auto folder = brokenRun("failed");
  recordEnding(folder, LOG_STYLES[0], Ending::FAILED, "worker 0: the loss is nan");
  auto record = readRunRecord(folder.path);
  CHECK(record.name == "broken");
  CHECK(record.state == RunRecord::FAILED);
  CHECK(record.reason == "worker 0: the loss is nan");
  for (auto& path: {folder.log(), folder.roleLog("worker", 0)}) {
    auto text = readWhole(path, TEXT_BYTES_MAX);
    CHECK(text.endsWith("the job failed: worker 0: the loss is nan\n"));
  }
  // The worker's earlier lines are still there.
  CHECK(contains(readWhole(folder.roleLog("worker", 0), TEXT_BYTES_MAX), "process 42"));
}

TEST_CASE("recordEnding: an interruption is not a failure") {
  auto folder = brokenRun("interrupted");
  recordEnding(folder, LOG_STYLES[0], Ending::INTERRUPTED, "received SIGTERM");
  auto record = readRunRecord(folder.path);
  CHECK(record.state == RunRecord::INTERRUPTED);
  CHECK(record.reason == "received SIGTERM");
  auto text = readWhole(folder.log(), TEXT_BYTES_MAX);
  CHECK(text.endsWith("the job was interrupted: received SIGTERM\n"));
}

TEST_CASE("recordEnding: a run that has finished stays finished, whatever is reported later") {
  auto folder = brokenRun("finished");
  {
    auto log = RunLog::reopen(folder, LOG_STYLES[0]);
    capnp::MallocMessageBuilder message;
    message.initRoot<Event>().initFinished().setWeightsSha256("0123");
    log.append(message.getRoot<Event>());
    CHECK(log.lastEvent() != nullptr);
    CHECK_THROWS(appendEnding(log, Ending::FAILED, "worker 0: killed"));
  }
  auto events = readWhole(folder.events(), TEXT_BYTES_MAX);
  for (auto ending: {Ending::FAILED, Ending::INTERRUPTED}) {
    auto outcome = recordEnding(folder, LOG_STYLES[0], ending, "coordinator has been silent");
    CHECK(KJ_ASSERT_NONNULL(outcome.weightsSha256) == "0123");
    CHECK(outcome.failure == nullptr);
    CHECK(outcome.interruption == nullptr);
  }
  CHECK(readWhole(folder.events(), TEXT_BYTES_MAX) == events);
  CHECK(KJ_ASSERT_NONNULL(recordedWeightsOf(folder)) == "0123");
  CHECK_FALSE(contains(readWhole(folder.log(), TEXT_BYTES_MAX), "silent"));
}

TEST_CASE("removeEnding: removes the end from a run's events, so that the run can be resumed") {
  auto folder = brokenRun("goes_on");
  auto before = readWhole(folder.events(), TEXT_BYTES_MAX);
  recordEnding(folder, LOG_STYLES[0], Ending::INTERRUPTED, "received SIGTERM");
  CHECK(readWhole(folder.events(), TEXT_BYTES_MAX) != before);
  for (int i = 0; i < 2; i++) {
    removeEnding(folder);
    CHECK(readWhole(folder.events(), TEXT_BYTES_MAX) == before);
  }
  auto outcome = recordEnding(folder, LOG_STYLES[0], Ending::FAILED, "coordinator: cannot listen");
  CHECK(KJ_ASSERT_NONNULL(outcome.failure) == "coordinator: cannot listen");
  CHECK(recordedWeightsOf(folder) == nullptr);
  CHECK(recordedWeightsOf(newFolder("without_a_run")) == nullptr);
}

TEST_CASE("recordEnding: a second call returns the first ending") {
  auto folder = brokenRun("twice");
  auto first = recordEnding(folder, LOG_STYLES[0], Ending::FAILED, "worker 0: killed");
  CHECK(KJ_ASSERT_NONNULL(first.failure) == "worker 0: killed");
  auto second = recordEnding(folder, LOG_STYLES[0], Ending::INTERRUPTED, "received SIGTERM");
  CHECK(KJ_ASSERT_NONNULL(second.failure) == "worker 0: killed");
  CHECK(second.interruption == nullptr);
}

TEST_CASE("RunLog: throws and writes nothing after its access is closed") {
  auto folder = newFolder("closed");
  auto access = kj::atomicRefcounted<LogAccess>();
  RunLog log(folder, LOG_STYLES[0], RunLog::toNobody(), nullptr, kj::atomicAddRef(*access));
  capnp::MallocMessageBuilder message;
  auto event = message.initRoot<Event>();
  event.initStarted().setName("closed");
  log.append(event);
  access->close();
  auto events = readWhole(folder.events(), TEXT_BYTES_MAX);
  CHECK_THROWS(log.append(event));
  CHECK(readWhole(folder.events(), TEXT_BYTES_MAX) == events);
}

TEST_CASE("recordEnding: removes a line that a full disk has cut off") {
  auto folder = brokenRun("torn");
  LineFile events(folder.events());
  events.appendWhole("{\"time_s\":179517"_kj.asBytes());
  recordEnding(folder, LOG_STYLES[0], Ending::FAILED, "coordinator: cannot write");
  auto record = readRunRecord(folder.path);
  CHECK(record.name == "broken");
  CHECK(record.reason == "coordinator: cannot write");
}

TEST_CASE("recordEnding: a run that failed before its first event has a record too") {
  auto folder = newFolder("early");
  recordEnding(folder, LOG_STYLES[0], Ending::FAILED, "coordinator: killed");
  auto record = readRunRecord(folder.path);
  CHECK(record.state == RunRecord::FAILED);
  CHECK(record.reason == "coordinator: killed");
}

}  // namespace
}  // namespace runner
