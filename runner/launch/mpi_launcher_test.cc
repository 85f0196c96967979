// mpirun is a shell script here. tests/hosts has a real one.
#include "runner/launch/mpi_launcher.h"

#include <doctest/doctest.h>

#include "runner/testing/ranks_of.h"
#include "tests/command.h"
#include "tests/text.h"

namespace runner {
namespace {

using tests::contains;

// Returns the words with which the launcher calls OpenMPI's mpirun.
kj::String wordsFor(kj::Maybe<kj::StringPtr> hosts) {
  RunFolder folder{tests::newFolder()};
  auto mpirun = writeScript(folder, "mpirun",
      "if [ \"$1\" = --version ]; then echo Open MPI; else echo words: \"$*\"; fi");
  auto command = kj::str("cluster.mpirun=", mpirun);
  kj::Vector<kj::StringPtr> overrides;
  overrides.add("cluster.launcher=mpi");
  overrides.add("cluster.interface=lo");
  overrides.add(command);
  KJ_IF_MAYBE(setting, hosts) overrides.add(*setting);
  auto printed = ranksOf(folder, overrides, newMpiLauncher);
  REQUIRE(contains(printed, "words: "));
  return printed;
}

TEST_CASE("MpiLauncher: tells OpenMPI to place ranks by a file of hosts only if there is one") {
  auto placed = wordsFor("cluster.hosts=[\"localhost\"]"_kj);
  CHECK(contains(placed, "--map-by seq "));
  CHECK(contains(placed, "--hostfile "));
  auto unplaced = wordsFor(nullptr);
  CHECK_FALSE(contains(unplaced, "--map-by"));
  CHECK_FALSE(contains(unplaced, "--hostfile"));
  CHECK(contains(unplaced, " -n 4 "));
}

// Calls the launcher with this script in place of mpirun.
kj::Maybe<kj::Exception> failureOf(kj::StringPtr script) {
  RunFolder folder{tests::newFolder()};
  auto command = kj::str("cluster.mpirun=", writeScript(folder, "mpirun", script));
  kj::StringPtr overrides[] = {
      "cluster.launcher=mpi", "cluster.interface=lo", "cluster.start_timeout_s=1", command};
  return kj::runCatchingExceptions([&]() { ranksOf(folder, overrides, newMpiLauncher); });
}

TEST_CASE("MpiLauncher: an mpirun that does not say its version is named") {
  auto failure = failureOf("exec sleep 1000");
  CHECK(contains(KJ_REQUIRE_NONNULL(failure).getDescription(),
      "--version` has not answered within 1 s (cluster.start_timeout_s)"));
}

TEST_CASE("MpiLauncher: an mpirun may write much to standard error before its version") {
  auto failure = failureOf("yes | head -c 200000 >&2; echo Open MPI");
  KJ_IF_MAYBE(e, failure) FAIL_CHECK(e->getDescription());
}

}  // namespace
}  // namespace runner
