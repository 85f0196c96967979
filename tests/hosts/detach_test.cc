// Runs in the background whose folder other hosts share.
#include <doctest/doctest.h>
#include <kj/debug.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/faults/failure.h"
#include "tests/hosts/hosts.h"
#include "tests/skip.h"
#include "tests/text.h"

namespace tests {
namespace {

TEST_CASE("other hosts list and follow a detached run, and stop says where it must be called") {
  KJ_IF_MAYBE(why, Hosts::whyNot()) SKIP_CASE(why->cStr());
  Hosts hosts(2);
  auto runs = newFolder();
  auto cache = cacheSetting();
  kj::StringPtr environment[] = {cache};
  auto call = [&](uint host, std::initializer_list<kj::StringPtr> options) {
    kj::Vector<kj::StringPtr> words;
    words.add(RUNNER);
    words.addAll(options);
    return hosts.start(host, words, environment);
  };
  auto begun = call(0, {"run", ENDLESS, "--detach", "--runs", runs})->wait();
  REQUIRE(begun.exitCode == 0);
  auto folder = kj::str(runs, "/endless/1");
  auto attached = call(1, {"attach", folder});
  REQUIRE(attached->waitForOutput("Speed: "));
  CHECK(contains(call(1, {"ps", "--runs", runs})->wait().output, kj::str("| ", folder, " | ")));

  auto refused = call(1, {"stop", folder})->wait();
  checkFailed(refused, {folder, "Run this command there: `runner stop "});
  CHECK(hosts.processes(0).size() > 0);

  CHECK(call(0, {"stop", folder})->wait().exitCode == 0);
  CHECK(hosts.processes(0).size() == 0);
  auto ended = attached->wait(FAILS_WITHIN_S);
  CHECK(ended.exitCode == 130);
  CHECK(contains(ended.errors, "interrupted: received SIGTERM"));
}

}  // namespace
}  // namespace tests
