#include "runner/logs/run_log.h"

#include <capnp/message.h>
#include <doctest/doctest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "io/checksum.h"
#include "runner/system/files.h"
#include "tests/command.h"
#include "tests/text.h"

namespace runner {
namespace {

using tests::readFile;
using tests::writeFile;

constexpr kj::StringPtr SPEED = "\"speed\":"_kj;

// The log of a run in a new folder. Each event comes half a second after the one before.
struct LoggedRun {
  const LogStyle& style;
  RunFolder folder{tests::newFolder()};
  kj::Maybe<RunLog> log;
  double time_s = 1.7e9;
  uint64_t events_bytes = 0;  // when note() was called
  LogExtents logs;

  explicit LoggedRun(const LogStyle& style): style(style) {
    log.emplace(folder, style, RunLog::toNobody(), TensorBoard(folder.tensorboard()));
  }

  void append(Role role, uint index, kj::FunctionParam<void(Event::Builder)> fill) {
    capnp::MallocMessageBuilder message;
    auto event = message.initRoot<Event>();
    event.setTimeS(time_s += 0.5);
    event.setRole(role);
    event.setIndex(index);
    fill(event);
    KJ_ASSERT_NONNULL(log).append(event);
  }

  void begin() {
    append(Role::COORDINATOR, 0, [](auto event) { event.initStarted().setName("run"); });
    append(Role::COORDINATOR, 0, [](auto event) { event.initPlaced().setKey("w"); });
    for (uint rank: {0u, 1u}) {
      append(Role::WORKER, rank, [](auto event) { event.initBegun().setUpdates("updates"); });
    }
  }

  // Worker `rank` logs the steps from `begin` to `end` - 1.
  void train(uint rank, uint64_t begin, uint64_t end) {
    for (uint64_t step = begin; step < end; step++) {
      append(Role::WORKER, rank, [&](auto event) {
        auto speed = event.initSpeed();
        speed.setEpoch(1);
        speed.setBatch(step);
        speed.setStep(step);
        speed.setGlobalStep(2 * step);
        speed.setBatchLoss(1.0 / step);
        speed.setImagesPerS(100);
      });
    }
  }

  void finish() {
    for (uint rank: {0u, 1u}) {
      append(Role::WORKER, rank, [](auto event) {
        event.initEnded().setBatchLoss(0.25);
        event.getEnded().setValidates(true);
      });
      append(Role::WORKER, rank, [](auto event) {
        event.initValidated().setLast(true);
        event.getValidated().setAccuracy(0.9);
      });
    }
    append(Role::COORDINATOR, 0, [](auto event) { event.initFinished().setWeightsSha256("0123"); });
  }

  // Records the values that a checkpoint would record now.
  void note() {
    auto& now = KJ_ASSERT_NONNULL(log);
    events_bytes = now.events_bytes();
    logs = now.extents();
    GrowingFiles growing(folder.path);
    for (auto& file: logs.files) file.crc32 = growing.sumOf(file.name, file.bytes, file.name);
  }

  // The run is lost, and resumes from the values that note() has recorded.
  void resume(const LogStyle& style, bool hasBoard) {
    log = nullptr;
    kj::Maybe<TensorBoard> board;
    if (hasBoard) board.emplace(folder.tensorboard());
    log = RunLog::resume(
        folder, style, RunLog::toNobody(), kj::mv(board), nullptr, events_bytes, logs);
  }

  // All files of the run with their bytes, by name.
  kj::Vector<kj::String> files() const {
    kj::Vector<kj::String> found;
    for (auto& entry: std::filesystem::recursive_directory_iterator(folder.path.cStr())) {
      if (!entry.is_regular_file()) continue;
      kj::StringPtr path = entry.path().c_str();
      found.add(kj::str(path.slice(folder.path.size() + 1), ": ", readFile(path)));
    }
    std::sort(found.begin(), found.end());
    return found;
  }
};

// The files of a run that was never lost.
kj::Vector<kj::String> unbroken(const LogStyle& style) {
  LoggedRun run(style);
  run.begin();
  for (uint rank: {0u, 1u}) run.train(rank, 1, 4);
  run.train(0, 4, 6);
  run.finish();
  return run.files();
}

// A run that was saved, logged some more lines, and then was lost.
void trainAndLose(LoggedRun& run) {
  run.begin();
  for (uint rank: {0u, 1u}) run.train(rank, 1, 4);
  run.note();
  double saved_s = run.time_s;
  run.train(1, 4, 20);
  run.append(Role::WORKER, 2, [](auto event) { event.initSpeed().setStep(1); });
  run.time_s = saved_s;
}

// For each style, interrupts a run, changes its files, and checks that it continues as if it had
// never been interrupted.
void checkGoesOn(kj::FunctionParam<void(LoggedRun&)> change) {
  for (auto& style: LOG_STYLES) {
    CAPTURE(style.name);
    LoggedRun run(style);
    trainAndLose(run);
    change(run);
    run.resume(style, true);
    run.train(0, 4, 6);
    run.finish();
    auto& log = KJ_ASSERT_NONNULL(run.log);
    CHECK(log.events_crc32() == io::crc32(readFile(run.folder.events()).asBytes()));
    auto found = run.files();
    for (auto& file: unbroken(style)) {
      CAPTURE(file.cStr());
      CHECK(std::find(found.begin(), found.end(), file) != found.end());
    }
    // The files of worker 2, which only the lost part names.
    CHECK(readFile(run.folder.roleLog("worker", 2)).size() < 200);
    CHECK_FALSE(isFolder(kj::str(run.folder.tensorboard(), "/worker-2")));
  }
}

TEST_CASE("RunLog: names the logs that were removed or renamed") {
  LoggedRun run(LOG_STYLES[0]);
  run.begin();
  run.train(0, 1, 3);
  auto& log = KJ_ASSERT_NONNULL(run.log);
  CHECK(log.removedLogs().size() == 0);
  auto moved = run.folder.roleLog("worker", 0);
  KJ_SYSCALL(::unlink(run.folder.log().cStr()));
  KJ_SYSCALL(::rename(moved.cStr(), kj::str(moved, ".old").cStr()));
  writeFile(moved, "of somebody else");
  auto removed = log.removedLogs();
  REQUIRE(removed.size() == 2);
  CHECK(removed[0] == run.folder.log());
  CHECK(removed[1] == moved);
  CHECK(log.isInPlace());
}

TEST_CASE("RunLog: the logs of a resumed run have no gap and no repeated line") {
  checkGoesOn([](LoggedRun&) {});
}

TEST_CASE("RunLog: if a log of a resumed run has changed, all logs are written again") {
  checkGoesOn([](LoggedRun& run) {
    auto text = readFile(run.folder.roleLog("worker", 0));
    text[text.size() / 4] ^= 1;
    writeFile(run.folder.roleLog("worker", 0), text);
  });
}

TEST_CASE("RunLog: if a log of a resumed run is missing, all logs are written again") {
  checkGoesOn([](LoggedRun& run) { ::unlink(run.folder.roleLog("worker", 1).cStr()); });
}

TEST_CASE("RunLog: if the checkpoint does not know the logs, all logs are written again") {
  checkGoesOn([](LoggedRun& run) { run.logs = {}; });
}

TEST_CASE("RunLog: a resumed run does not read its old `speed` events") {
  LoggedRun run(LOG_STYLES[0]);
  trainAndLose(run);
  auto events = readFile(run.folder.events());
  auto kind = std::search(events.begin(), events.end(), SPEED.begin(), SPEED.end());
  REQUIRE(kind != events.end());
  kind[SPEED.size()] = '?';
  writeFile(run.folder.events(), events);
  run.resume(run.style, true);
  run.log = nullptr;
  run.logs = {};
  CHECK_THROWS(run.resume(run.style, true));
}

TEST_CASE("RunLog: a run that is resumed in another style has all lines in that style") {
  LoggedRun run(LOG_STYLES[0]);
  trainAndLose(run);
  auto before = readFile(run.folder.log());
  run.resume(LOG_STYLES[1], true);
  CHECK(readFile(run.folder.log()) != before);
  LoggedRun other(LOG_STYLES[1]);
  trainAndLose(other);
  other.resume(LOG_STYLES[1], true);
  CHECK(readFile(run.folder.log()) == readFile(other.folder.log()));
}

TEST_CASE("RunLog: a run that is resumed with TensorBoard has its curves from the beginning") {
  LoggedRun run(LOG_STYLES[0]);
  trainAndLose(run);
  run.resume(run.style, true);
  auto expected = run.files();
  run.note();
  run.resume(run.style, false);
  CHECK_FALSE(isFolder(run.folder.tensorboard()));
  run.note();
  run.resume(run.style, true);
  auto found = run.files();
  CHECK(kj::str(found) == kj::str(expected));
}

}  // namespace
}  // namespace runner
