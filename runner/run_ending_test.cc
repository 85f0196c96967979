#include "runner/run_ending.h"

#include <capnp/message.h>
#include <doctest/doctest.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "runner/run_record.h"
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

// What the coordinator of a killed job has left: one worker that joined.
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

TEST_CASE("recordEnding: every file of the run states the reason, and the record reads it") {
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
  // What the worker wrote before is still there.
  CHECK(contains(readWhole(folder.roleLog("worker", 0), TEXT_BYTES_MAX), "process 42"));
}

TEST_CASE("recordEnding: an interruption is no failure") {
  auto folder = brokenRun("interrupted");
  recordEnding(folder, LOG_STYLES[0], Ending::INTERRUPTED, "received SIGTERM");
  auto record = readRunRecord(folder.path);
  CHECK(record.state == RunRecord::INTERRUPTED);
  CHECK(record.reason == "received SIGTERM");
  auto text = readWhole(folder.log(), TEXT_BYTES_MAX);
  CHECK(text.endsWith("the job was interrupted: received SIGTERM\n"));
}

TEST_CASE("recordEnding: a line that a full disk has torn is removed") {
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
