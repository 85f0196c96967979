// The job's secret: a role that does not know it cannot join the job, and reports why.
#include <doctest/doctest.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>

#include "tests/faults/failure.h"
#include "tests/faults/roles_by_hand.h"
#include "tests/text.h"

namespace tests {
namespace {

constexpr kj::StringPtr SHORT = "tests/faults/short.toml"_kj;

TEST_CASE(
    "a role that does not know the secret of a launched job is refused, and the job continues") {
  auto run = startedRun(ENDLESS);
  auto words = kj::str(run->role("worker", 0).commandLine);
  auto begin = strstr(words.cStr(), "127.0.0.1:");
  REQUIRE(begin != nullptr);
  kj::String address = kj::heapString(begin, strcspn(begin, " "));
  auto ended = startRole(ENDLESS, "worker", 0, address)->wait(FAILS_WITHIN_S);
  CHECK(ended.exitCode == 1);
  INFO(ended.errors);
  CHECK(contains(ended.errors, kj::str("error: the program at ", address,
                                   " has a different secret than this role. Compare ")));
  CHECK(run->roles().size() == 5);
  run->command.kill(SIGINT);
  CHECK(run->command.wait().exitCode == 130);
}

TEST_CASE("roles started by hand with one secret train as without one") {
  checkTrainsByHand(SHORT, newSecretFile(), train(SHORT).weightsSha256);
}

TEST_CASE("a role started by hand with another secret than its coordinator is told so") {
  auto coordinator = startCoordinator(SHORT, newFolder(), newSecretFile('a'));
  auto address = addressOf(*coordinator);
  for (auto& secret: {newSecretFile('b'), kj::String()}) {
    auto ended = startRole(SHORT, "server", 0, address, secret)->wait(FAILS_WITHIN_S);
    CHECK(ended.exitCode == 1);
    CHECK(contains(ended.errors, " has a different secret than this role. "));
  }
  coordinator->kill(SIGINT);
  CHECK(coordinator->wait().exitCode == 130);
}

TEST_CASE("a secret that others may read is refused before a role does anything") {
  auto secret = newSecretFile('a');
  ::chmod(secret.cStr(), 0644);
  auto ended = startCoordinator(SHORT, newFolder(), secret)->wait();
  CHECK(ended.exitCode == 2);
  CHECK(
      contains(ended.errors, kj::str(secret, " (RUNNER_SECRET_FILE) can be read by other users")));
}

}  // namespace
}  // namespace tests
