// How long jobs by ssh take to start. Prints the times, but does not check them.
#include <doctest/doctest.h>
#include <kj/time.h>

#include "tests/hosts/ssh_job.h"
#include "tests/skip.h"
#include "tests/text.h"

namespace tests {
namespace {

constexpr kj::StringPtr SHORT = "tests/faults/short.toml"_kj;

TEST_CASE("64 roles on four hosts train by ssh") {
  KJ_IF_MAYBE(why, Hosts::whyNot(SSHD)) SKIP_CASE(why->cStr());
  Hosts hosts(4, SSHD);
  // Brings the program to the hosts.
  REQUIRE(runBySsh(hosts, SHORT, "h1 h2 h3 h4", {"cluster.workers=4"})->wait().exitCode == 0);
  auto& clock = kj::systemPreciseMonotonicClock();
  for (auto workers: {3, 63}) {
    auto setting = kj::str("cluster.workers=", workers);
    auto begin = clock.now();
    auto run = runBySsh(hosts, SHORT, "h1 h2 h3 h4", {setting, "train.epochs=1"});
    REQUIRE(run->waitForOutput("Start training with"));
    auto time = clock.now() - begin;
    MESSAGE((workers + 1), " roles: the first step began after ", time / kj::MILLISECONDS, " ms");
    CHECK(run->wait().exitCode == 0);
  }
}

}  // namespace
}  // namespace tests
