#include "tests/faults/resumable_run.h"

#include <kj/debug.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/inotify.h>
#include <algorithm>
#include <filesystem>

#include "tests/comparable_events.h"
#include "tests/text.h"

namespace tests {

namespace {

// How a line of log.txt begins.
constexpr kj::StringPtr MOMENT = "2026-11-23 02:07:11,317 "_kj;

// Returns `text` with each number after `mark` replaced by `#`.
kj::String withoutNumberAfter(kj::StringPtr text, kj::StringPtr mark) {
  kj::Vector<char> result;
  for (size_t i = 0; i < text.size();) {
    if (!text.slice(i).startsWith(mark)) {
      result.add(text[i++]);
      continue;
    }
    result.addAll(mark);
    result.add('#');
    i += mark.size();
    while (i < text.size() && strchr("0123456789.e+-", text[i]) != nullptr) i++;
  }
  result.add('\0');
  return kj::String(result.releaseAsArray());
}

}  // namespace

ResumableRun::ResumableRun(kj::ArrayPtr<const kj::StringPtr> settings, kj::StringPtr program)
    : runs(newFolder()),
      folder(kj::str(runs, "/resumable/1")),
      settings(kj::heapArray<kj::StringPtr>(settings)),
      program(program) {}

kj::Own<Command> ResumableRun::start(kj::ArrayPtr<const kj::StringPtr> words) const {
  kj::Vector<kj::StringPtr> all;
  all.addAll(kj::ArrayPtr<const kj::StringPtr>({program, "run", RESUMABLE}));
  // `runner run` refuses --runs beside --folder.
  bool isNamed = std::find(words.begin(), words.end(), "--folder"_kj) != words.end();
  if (!isNamed) all.addAll(kj::ArrayPtr<const kj::StringPtr>({"--runs", runs}));
  for (auto setting: settings) {
    all.add("--set");
    all.add(setting);
  }
  all.addAll(words);
  auto cache = cacheSetting();
  kj::StringPtr environment[] = {cache};
  return kj::heap<Command>(all.asPtr(), Command::Surroundings{.environment = environment});
}

Trained ResumableRun::train(kj::ArrayPtr<const kj::StringPtr> words) const {
  return finished(start(words)->wait(), folder);
}

bool ResumableRun::killAfter(
    kj::StringPtr part, uint count, kj::ArrayPtr<const kj::StringPtr> words) {
  auto command = start(words);
  auto path = kj::str(folder, "/events.jsonl");
  // The log file exists before its first line is written.
  bool kills = command->waitForOutput("Epoch");
  constexpr kj::StringPtr FINISHED = "\"finished\":{"_kj;
  if (kills) {
    int raw;
    KJ_SYSCALL(raw = ::inotify_init1(IN_CLOEXEC));
    kj::AutoCloseFd changes(raw);
    KJ_SYSCALL(::inotify_add_watch(changes, path.cStr(), IN_MODIFY));
    for (;;) {
      auto events = readFile(path);
      if (contains(events, FINISHED)) kills = false;
      if (!kills || countOf(events, part) >= count) break;
      pollfd changed = {changes, POLLIN, 0};
      int ready;
      KJ_SYSCALL(ready = ::poll(&changed, 1, PATIENCE_S * 1000));
      KJ_REQUIRE(ready == 1, "events.jsonl has not grown", events, command->errors());
      char read[4096];
      KJ_SYSCALL(::read(changes, read, sizeof(read)));
    }
  }
  auto roles = processesWith(kj::str("--folder=", folder));
  if (kills) command->kill(SIGKILL);
  auto ended = command->wait();
  // The run may finish, and even end, before the signal arrives.
  bool isKilled = ended.signal == SIGKILL;
  KJ_REQUIRE(isKilled || ended.exitCode == 0, ended.output, ended.errors);
  KJ_REQUIRE(haveEnded(roles, PATIENCE_S));
  return isKilled && !contains(readFile(path), FINISHED);
}

void ResumableRun::trainUntil(
    kj::StringPtr part, uint count, kj::ArrayPtr<const kj::StringPtr> words) {
  constexpr uint TRIES = 10;
  for (uint i = 0; i < TRIES; ++i) {
    if (killAfter(part, count, words)) return;
    std::filesystem::remove_all(folder.cStr());
  }
  KJ_FAIL_REQUIRE("the run always ends before it is killed", part, count);
}

kj::String ResumableRun::newestCheckpoint() const {
  // A kill may leave a newer one without a manifest.
  constexpr kj::StringPtr LIST = "ls -v \"$0\"/step-*/manifest.json | xargs -n 1 dirname"_kj;
  auto ended = Command({"sh", "-c", LIST, kj::str(folder, "/checkpoints")}).wait();
  auto paths = linesOf(ended.output);
  KJ_REQUIRE(paths.size() > 0, ended.errors);
  return kj::mv(paths.back());
}

kj::String ResumableRun::events() const {
  return comparableEvents(runner::RunFolder{kj::str(folder)});
}

kj::String ResumableRun::log() const {
  auto lines = linesOf(read("log.txt"));
  for (auto& line: lines) {
    line = kj::str(line.slice(MOMENT.size()));
    for (auto mark: {"Speed: "_kj, "Time cost="_kj}) line = withoutNumberAfter(line, mark);
  }
  std::sort(lines.begin(), lines.end());
  return kj::str(kj::strArray(lines, "\n"), "\n");
}

kj::String ResumableRun::table() const {
  auto ended = Command({program, "table", folder}).wait();
  KJ_REQUIRE(ended.exitCode == 0, ended.errors);
  kj::Vector<kj::String> rows;
  for (auto& line: linesOf(ended.output)) {
    if (line.size() == 0) break;
    // Without the last column, the time.
    auto rest = line.slice(0, line.size() - 1);
    rows.add(kj::str(line.slice(0, KJ_ASSERT_NONNULL(kj::heapString(rest).findLast('|')))));
  }
  return kj::str(kj::strArray(rows, "\n"), "\n");
}

}  // namespace tests
