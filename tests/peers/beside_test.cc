// tests/peers/beside.py, with a program that stands for another parameter server.
#include <doctest/doctest.h>

#include "tests/command.h"
#include "tests/run.h"
#include "tests/text.h"

namespace tests {
namespace {

constexpr kj::StringPtr UPDATES = "--updates=200"_kj;

// A program that takes a Python's arguments: a probe of the version, or a script of tests/peers.
kj::String newPython(kj::StringPtr asProbe, kj::StringPtr asScript) {
  auto path = kj::str(newFolder(), "/python3");
  writeFile(path,
      kj::str("#!/bin/sh\nif [ \"$1\" = -c ]; then\n", asProbe, "\nelse\n", asScript, "\nfi\n"));
  REQUIRE(Command({"chmod", "+x", path}).wait().exitCode == 0);
  return path;
}

Ended beside(kj::StringPtr python) {
  auto cache = cacheSetting();
  kj::StringPtr setting = cache;
  return Command({"python3", "tests/peers/beside.py", "tensorflow", "--programs=.", "--rounds=1",
                     UPDATES, "--python", python},
      {.environment = kj::arrayPtr(&setting, 1)})
      .wait();
}

TEST_CASE("beside.py: a Python without the peer is named, and the exit code is 77") {
  auto python = newPython("exit 1", "");
  auto ended = beside(python);
  CHECK(ended.exitCode == 77);
  CHECK(ended.output == "");
  CHECK(ended.errors ==
        kj::str("beside: ", python, " has no tensorflow: name another with --python\n"));
  CHECK(beside("/nowhere/python3").exitCode == 77);
}

TEST_CASE("beside.py: one table has our figures, the peer's and their ratios") {
  auto ended = beside(newPython("echo 2.21.0",
      "echo \"{\\\"begun\\\": $(date +%s.%N)}\"; echo '{\"updates_per_s\": 7, \"accuracy\": "
      "0.5}'"));
  INFO(ended.errors);
  REQUIRE(ended.exitCode == 0);
  INFO(ended.output);
  CHECK(contains(ended.errors, "beside: tensorflow 2.21.0 of "));
  CHECK(ended.output.startsWith("| | ours | tensorflow | theirs / ours |\n| --- |"));
  CHECK(contains(ended.output, "| updates per second | "));
  CHECK(contains(ended.output, " | 7 (7 – 7) | "));
  CHECK(contains(ended.output, "| accuracy at the end | "));
  CHECK(contains(ended.output, " | 0.5000 (0.5000 – 0.5000) | "));
}

TEST_CASE("beside.py: a peer that fails ends the comparison with its last line") {
  auto ended = beside(newPython("echo 2.21.0", "echo 'no room' >&2; exit 3"));
  CHECK(ended.exitCode == 1);
  CHECK(ended.errors.endsWith("beside: exit code 3: no room\n"));
}

}  // namespace
}  // namespace tests
