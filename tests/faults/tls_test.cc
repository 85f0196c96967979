// cluster.tls: jobs train the same bits with it, and roles report an error if only some of them use
// it.
#include <doctest/doctest.h>
#include <kj/debug.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>

#include "tests/faults/failure.h"
#include "tests/faults/roles_by_hand.h"
#include "tests/text.h"

namespace tests {
namespace {

constexpr kj::StringPtr SHORT = "tests/faults/short.toml"_kj;

// Returns a file that is `file` with `lines` after it, so that roles need no --set.
kj::String fileWith(kj::StringPtr file, kj::StringPtr lines) {
  char path[PATH_MAX];
  KJ_REQUIRE(::realpath(file.cStr(), path) != nullptr);
  auto made = kj::str(newFolder(), "/short.toml");
  writeFile(made, kj::str("extends = \"", path, "\"\n", lines));
  return made;
}

kj::String withTls(bool tls) {
  return fileWith(SHORT, kj::str("[cluster]\ntls = ", tls, "\n[kvstore]\ntransport = \"tcp\"\n"));
}

TEST_CASE("a job trains the same bits with TLS and without it") {
  constexpr kj::StringPtr PLAIN[] = {"kvstore.transport=\"tcp\""_kj};
  constexpr kj::StringPtr TLS[] = {"kvstore.transport=\"tcp\""_kj, "cluster.tls=true"_kj};
  constexpr kj::StringPtr INLINE[] = {
      "kvstore.transport=\"tcp\""_kj, "cluster.tls=true"_kj, "cluster.launcher=\"inline\""_kj};
  auto plain = train(SHORT, PLAIN).weightsSha256;
  CHECK(train(SHORT, TLS).weightsSha256 == plain);
  CHECK(train(SHORT, INLINE).weightsSha256 == plain);
}

TEST_CASE("a job whose values travel through shared memory trains with TLS, too") {
  constexpr kj::StringPtr TLS[] = {"cluster.tls=true"_kj};
  auto run = train(SHORT, TLS);
  CHECK(run.weightsSha256 == train(SHORT).weightsSha256);
  CHECK(
      contains(readFile(kj::str(run.folder, "/events.jsonl")), "\"transport\":\"shared_memory\""));
}

TEST_CASE("roles started by hand with TLS train as runner run does") {
  auto file = withTls(true);
  checkTrainsByHand(file, newSecretFile(), train(file).weightsSha256);
}

TEST_CASE("a role and a coordinator of which only one uses TLS both say so") {
  auto secret = newSecretFile();
  for (bool coordinatorHas: {false, true}) {
    auto coordinator = startCoordinator(withTls(coordinatorHas), newFolder(), secret);
    auto address = addressOf(*coordinator);
    auto ended =
        startRole(withTls(!coordinatorHas), "worker", 0, address, secret)->wait(FAILS_WITHIN_S);
    CHECK(ended.exitCode == 1);
    CHECK(ended.errors == kj::str("error: the coordinator at ", address,
                              coordinatorHas ? " uses TLS, and this role does not"
                                             : " does not use TLS, and this role does",
                              " (cluster.tls): start all roles with the same file\n"));
    CHECK(coordinator->waitForErrors(
        coordinatorHas ? "it does not use TLS, and this role does (cluster.tls = true)"
                       : "it uses TLS (cluster.tls = true), and this role does not"));
    coordinator->kill(SIGINT);
    CHECK(coordinator->wait().exitCode == 130);
  }
}

TEST_CASE("with TLS, a role that has a different secret is told so") {
  auto file = withTls(true);
  auto coordinator = startCoordinator(file, newFolder(), newSecretFile('a'));
  auto address = addressOf(*coordinator);
  for (auto& secret: {newSecretFile('b'), kj::String()}) {
    auto ended = startRole(file, "server", 0, address, secret)->wait(FAILS_WITHIN_S);
    CHECK(ended.exitCode == 1);
    CHECK(contains(ended.errors, " has a different secret than this role. "));
  }
  coordinator->kill(SIGINT);
  CHECK(coordinator->wait().exitCode == 130);
}

TEST_CASE("a coordinator that should use TLS without a secret is refused, with the way out") {
  auto ended = startCoordinator(withTls(true))->wait(FAILS_WITHIN_S);
  CHECK(ended.exitCode == 2);
  CHECK(contains(ended.errors,
      "TLS takes its keys from the job's secret (cluster.tls = true), so the roles need a secret: "
      "make one with `(umask 077; openssl rand -hex 32 > FILE)`"));
}

}  // namespace
}  // namespace tests
