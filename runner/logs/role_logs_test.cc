#include "runner/logs/role_logs.h"

#include <capnp/message.h>
#include <doctest/doctest.h>
#include <kj/debug.h>
#include <kj/function.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/text.h"

namespace runner {
namespace {

constexpr uint64_t TEXT_BYTES_MAX = 1 << 20;

// A folder, and events that go to its files.
struct TestLogs {
  RunFolder folder;
  kj::Own<RoleLogs> logs;

  explicit TestLogs(kj::StringPtr name) {
    folder.path = kj::str(::getenv("TEST_TMPDIR"), "/", name);
    REQUIRE(::mkdir(folder.path.cStr(), 0777) == 0);
    logs = kj::heap<RoleLogs>(folder);
  }

  void append(Role role, uint index, kj::ArrayPtr<const kj::String> lines,
      kj::FunctionParam<void(Event::Builder)> fill) {
    capnp::MallocMessageBuilder message;
    auto event = message.initRoot<Event>();
    event.setTimeS(1.5e9);
    event.setRole(role);
    event.setIndex(index);
    fill(event);
    logs->append(event, lines);
  }

  void join(Role role, uint index, kj::StringPtr address) {
    append(role, index, nullptr, [&](Event::Builder event) {
      event.initJoined().setAddress(address);
      event.getJoined().setPid(42);
    });
  }

  // Returns the file without the 24 bytes of time before the role's own words.
  kj::String read(kj::StringPtr role, uint index) {
    auto text = readWhole(folder.roleLog(role, index), TEXT_BYTES_MAX);
    kj::String result;
    for (kj::StringPtr rest = text; rest.size() > 0;) {
      auto end = KJ_ASSERT_NONNULL(rest.findFirst('\n'), "a torn line", rest);
      auto line = kj::str(rest.slice(0, end));
      kj::StringPtr shown = line;
      if (line.startsWith("2017-07-1")) shown = shown.slice(24);
      result = kj::str(result, shown, '\n');
      rest = rest.slice(end + 1);
    }
    return result;
  }
};

TEST_CASE("RoleLogs: each role's file has its lines, and its actions in plain words") {
  TestLogs logs("words");
  logs.append(Role::COORDINATOR, 0, nullptr, [](Event::Builder event) {
    auto placed = event.initPlaced();
    placed.setKey("fc1_weight");
    placed.setServer(1);
    placed.setBytes(4096);
  });
  logs.join(Role::SERVER, 1, "127.0.0.1:7");
  logs.join(Role::WORKER, 0, "");
  logs.join(Role::WORKER, 1, "");
  kj::String lines[] = {kj::str("one"), kj::str("two")};
  logs.append(Role::WORKER, 1, lines, [](Event::Builder event) { event.initTrained(); });
  logs.append(Role::WORKER, 0, nullptr,
      [](Event::Builder event) { event.initBadRecord().setReason("record 7 is no JPEG"); });
  logs.append(Role::COORDINATOR, 0, nullptr,
      [](Event::Builder event) { event.initFinished().setWeightsSha256("abc"); });

  CHECK(logs.read("server", 1) ==
        "server 1: holds 4096 bytes of fc1_weight\n"
        "server 1: joined the job, process 42, listens on 127.0.0.1:7\n"
        "server 1: the job is done, weights sha256=abc\n");
  CHECK(logs.read("worker", 0) ==
        "worker 0: joined the job, process 42\nworker 0: warning: record 7 is no JPEG\n"
        "worker 0: the job is done, weights sha256=abc\n");
  CHECK(logs.read("worker", 1) ==
        "worker 1: joined the job, process 42\none\ntwo\n"
        "worker 1: the job is done, weights sha256=abc\n");
}

TEST_CASE("RoleLogs: only files with the names of logs are continued") {
  TestLogs logs("names");
  for (auto name: {"worker-007.log", "worker- 5.log", "worker--3.log", "worker-99999999999.log",
           "worker-.log"}) {
    writeWhole(kj::str(logs.folder.path, "/", name), "somebody's");
  }
  logs.logs->reopen();
  for (auto index: {7u, 5u, 4294967293u, 1215752191u, 0u}) {
    CAPTURE(index);
    CHECK(::access(logs.folder.roleLog("worker", index).cStr(), F_OK) != 0);
  }
}

TEST_CASE("RoleLogs: control characters of names neither reach a terminal nor begin a line") {
  TestLogs logs("controls");
  logs.append(Role::COORDINATOR, 0, nullptr, [](Event::Builder event) {
    event.initPlaced().setKey("a\x1b[31m\nb_weight");
    event.getPlaced().setBytes(8);
  });
  logs.join(Role::WORKER, 0, "");
  logs.append(Role::WORKER, 0, nullptr,
      [](Event::Builder event) { event.initBadRecord().setReason("\x1b.jpg is no JPEG"); });
  logs.append(Role::COORDINATOR, 0, nullptr,
      [](Event::Builder event) { event.initFailed().setReason("\x07.jpg is gone"); });
  CHECK(logs.read("server", 0) ==
        "server 0: holds 8 bytes of a\\x1b[31m\\x0ab_weight\n"
        "server 0: the job failed: \\x07.jpg is gone\n");
  CHECK(logs.read("worker", 0) ==
        "worker 0: joined the job, process 42\n"
        "worker 0: warning: \\x1b.jpg is no JPEG\n"
        "worker 0: the job failed: \\x07.jpg is gone\n");
}

TEST_CASE("RoleLogs: the end of a failed job is in the files of all roles that joined") {
  TestLogs logs("failed");
  logs.join(Role::WORKER, 0, "");
  logs.append(Role::COORDINATOR, 0, nullptr,
      [](Event::Builder event) { event.initFailed().setReason("worker 1 was lost"); });
  CHECK(logs.read("worker", 0).endsWith("worker 0: the job failed: worker 1 was lost\n"));
  CHECK(::access(logs.folder.roleLog("worker", 1).cStr(), F_OK) != 0);
}

}  // namespace
}  // namespace runner
