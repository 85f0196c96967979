#include "tests/faults/failure.h"

#include <doctest/doctest.h>
#include <kj/debug.h>
#include <kj/vector.h>
#include <string.h>

#include "tests/text.h"

namespace tests {

kj::Array<kj::String> errorLines(kj::StringPtr text) {
  kj::Vector<kj::String> found;
  for (size_t begin = 0; begin < text.size();) {
    auto rest = text.slice(begin);
    auto end = rest.findFirst('\n').orDefault(rest.size());
    if (rest.startsWith("error: ")) found.add(kj::heapString(rest.slice(0, end)));
    begin += end + 1;
  }
  return found.releaseAsArray();
}

void checkFailed(const Ended& ended, Words words) {
  INFO("stderr:\n", ended.errors);
  CHECK(ended.exitCode == 1);
  auto lines = errorLines(ended.errors);
  CHECK(lines.size() == 1);
  for (auto word: words) {
    INFO("must name: ", word);
    for (auto& line: lines) CHECK(contains(line, word));
  }
}

namespace {

// Returns the text without the characters that JSON or HTML escape.
kj::String plain(kj::StringPtr text) {
  kj::Vector<char> kept;
  for (char c: text) {
    if (::strchr("\\\"`<>&;'", c) == nullptr) kept.add(c);
  }
  kept.add('\0');
  return kj::String(kept.releaseAsArray());
}

kj::StringPtr lastLineOf(kj::StringPtr text) {
  KJ_REQUIRE(text.endsWith("\n"), "a torn line", text);
  size_t begin = text.size() - 1;
  while (begin > 0 && text[begin - 1] != '\n') begin--;
  return text.slice(begin);
}

}  // namespace

void checkRecorded(const Run& run, const Ended& ended) {
  auto lines = errorLines(ended.errors);
  REQUIRE(lines.size() == 1);
  constexpr kj::StringPtr BEGIN = "error: "_kj;
  auto end = ::strstr(lines[0].cStr(), ". Nothing is left running");
  REQUIRE(end != nullptr);
  auto cause =
      kj::heapString(lines[0].begin() + BEGIN.size(), end - lines[0].begin() - BEGIN.size());
  INFO("cause: ", cause);
  auto events = run.read("events.jsonl");
  auto last = plain(lastLineOf(events));
  CHECK(contains(last, kj::str("failed:{reason:", plain(cause), "}}")));
  kj::Vector<kj::String> logs;
  logs.add(kj::str("log.txt"));
  for (auto role: {"server", "worker"}) {
    for (uint i = 0; i < 2; i++) {
      auto joined = kj::str("\"role\":\"", role, "\",\"index\":", i, ",\"joined\"");
      if (contains(events, joined)) logs.add(kj::str(role, "-", i, ".log"));
    }
  }
  for (auto& name: logs) {
    INFO(name);
    auto log = run.read(name);
    CHECK(lastLineOf(log).endsWith(kj::str("the job failed: ", cause, "\n")));
  }
  for (auto name: {"table.md", "report.html"}) {
    INFO(name);
    CHECK(contains(plain(run.read(name)), plain(kj::str("failed: ", cause))));
  }
}

void checkNothingLeft(const Run& run) {
  auto left = processesWith(run.folder);
  for (auto& process: left) FAIL_CHECK("still runs: ", process.commandLine);
}

// A run in the middle of its training.
kj::Own<Run> startedRun(kj::StringPtr file, Words settings) {
  auto run = kj::heap<Run>(file, settings);
  KJ_REQUIRE(run->command.waitForOutput("Speed: "), run->command.output(), run->command.errors());
  return run;
}

}  // namespace tests
