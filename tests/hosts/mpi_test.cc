// Jobs over several hosts whose roles mpirun starts.
#include <doctest/doctest.h>
#include <kj/debug.h>
#include <signal.h>
#include <unistd.h>

#include "tests/faults/failure.h"
#include "tests/hosts/conditions.h"
#include "tests/hosts/hosts.h"
#include "tests/hosts/launched_run.h"
#include "tests/skip.h"
#include "tests/text.h"

namespace tests {
namespace {

constexpr kj::StringPtr SHORT = "tests/faults/short.toml"_kj;
constexpr kj::StringPtr MPIRUNS[] = {"mpirun.openmpi"_kj, "mpirun.mpich"_kj};
constexpr Hosts::Settings SSHD = {.hasSshd = true};
// Three hosts beside that of `runner run`.
constexpr kj::StringPtr HOSTS = R"(cluster.hosts=["h2", "h3", "h4"])"_kj;

kj::Maybe<kj::String> whyNot() {
  KJ_IF_MAYBE(why, Hosts::whyNot(SSHD)) return kj::mv(*why);
  return whyNotInstalled(MPIRUNS);
}

// A run on host 0 by this mpirun.
LaunchedRun runBy(const Hosts& hosts, kj::StringPtr mpirun, kj::StringPtr file,
    kj::ArrayPtr<const kj::StringPtr> more = nullptr) {
  auto command = kj::str("cluster.mpirun=", mpirun);
  kj::Vector<kj::StringPtr> settings;
  settings.addAll(std::initializer_list<kj::StringPtr>{"cluster.launcher=mpi", command, HOSTS});
  settings.addAll(more);
  return LaunchedRun(hosts, file, settings);
}

TEST_CASE("mpirun of OpenMPI and of MPICH trains the same bits as one machine") {
  KJ_IF_MAYBE(why, whyNot()) SKIP_CASE(why->cStr());
  constexpr kj::StringPtr SETTINGS[] = {
      "cluster.servers=2"_kj, "cluster.workers=3"_kj, "train.epochs=1"_kj};
  Hosts hosts(4, SSHD);
  for (auto& condition: conditionsOf(SHORT, SETTINGS)) {
    CAPTURE(condition.name);
    hosts.setVariables(ODD_HOST, condition.hostVariables);
    for (auto mpirun: MPIRUNS) {
      CAPTURE(mpirun);
      auto run = runBy(hosts, mpirun, SHORT, condition.settings);
      auto ended = run.command->wait();
      INFO(ended.errors);
      CHECK(ended.exitCode == 0);
      CHECK(contains(ended.output, condition.weightsSha256));
      auto events = run.read("events.jsonl");
      CHECK(contains(events, "\"joined\":{\"address\":\"10.77.0.2:"));
      CHECK(contains(events, "\"joined\":{\"address\":\"10.77.0.3:"));
      // Neither the secret nor the host file.
      CHECK(!run.has("secret"));
      CHECK(!run.has("rank_hosts.txt"));
      run.checkNothingRuns();
    }
  }
}

TEST_CASE("a rank that is killed is named with its host, and the others end") {
  KJ_IF_MAYBE(why, whyNot()) SKIP_CASE(why->cStr());
  Hosts hosts(4, SSHD);
  for (auto mpirun: MPIRUNS) {
    CAPTURE(mpirun);
    auto run = runBy(hosts, mpirun, ENDLESS);
    REQUIRE(run.command->waitForOutput("Speed: "));
    // Server 0 and worker 0 run on h2, server 1 and worker 1 on h3.
    KJ_SYSCALL(::kill(run.youngestRole(2).pid, SIGKILL));
    auto ended = run.command->wait(FAILS_WITHIN_S);
    // MPICH kills all ranks when one is lost, perhaps before the coordinator has noticed. Then
    // MPICH's own lines name the host.
    bool isNoticed = contains(ended.errors, "closed its connection");
    if (isNoticed || mpirun != "mpirun.mpich"_kj) {
      checkFailed(ended, {" 1 on h3", "closed its connection"});
    } else {
      CHECK(contains(ended.errors, "RUNNING AT h3"));
      checkFailed(ended, {"mpirun.mpich ended with exit code"});
    }
    run.checkNothingRuns();
  }
}

TEST_CASE("Ctrl-C, or the loss of `runner run`, leaves no rank on any host") {
  KJ_IF_MAYBE(why, whyNot()) SKIP_CASE(why->cStr());
  Hosts hosts(4, SSHD);
  for (auto mpirun: MPIRUNS) {
    CAPTURE(mpirun);
    auto interrupted = runBy(hosts, mpirun, ENDLESS);
    REQUIRE(interrupted.command->waitForOutput("Speed: "));
    KJ_SYSCALL(::kill(interrupted.launcher().pid, SIGINT));
    auto ended = interrupted.command->wait(FAILS_WITHIN_S);
    CHECK(ended.exitCode == 130);
    CHECK(contains(ended.errors, "and each other role ends when it loses the coordinator"));
    interrupted.checkNothingRuns();

    auto lost = runBy(hosts, mpirun, ENDLESS);
    REQUIRE(lost.command->waitForOutput("Speed: "));
    KJ_SYSCALL(::kill(lost.launcher().pid, SIGKILL));
    lost.checkNothingRuns();
  }
}

TEST_CASE("a wrong host name, and a host without the libraries, end the job with one line") {
  auto settings = SSHD;
  settings.lastLacksLibraries = true;
  KJ_IF_MAYBE(why, whyNot()) SKIP_CASE(why->cStr());
  KJ_IF_MAYBE(why, Hosts::whyNot(settings)) SKIP_CASE(why->cStr());
  Hosts hosts(4, settings);
  for (auto mpirun: MPIRUNS) {
    CAPTURE(mpirun);
    auto wrong = runBy(hosts, mpirun, ENDLESS, {R"(cluster.hosts=["h2", "nowhere"])"_kj});
    checkFailed(wrong.command->wait(FAILS_WITHIN_S),
        {" 1 on nowhere: ", "cannot start it: no machine of this name is known",
            "hostname nowhere"});
    wrong.checkNothingRuns();

    auto lacking = runBy(hosts, mpirun, ENDLESS, {"cluster.workers=3"_kj});
    checkFailed(lacking.command->wait(FAILS_WITHIN_S),
        {"worker 2 on h4", "error while loading shared libraries", "the same path"});
    lacking.checkNothingRuns();
  }
}

TEST_CASE("the error names a program that is not mpirun, or an mpirun that is missing") {
  KJ_IF_MAYBE(why, Hosts::whyNot()) SKIP_CASE(why->cStr());
  Hosts hosts(1);
  for (kj::StringPtr program: {"/bin/true", "no-such-mpirun"}) {
    auto run = runBy(hosts, program, ENDLESS, {R"(cluster.hosts=["h1"])"_kj});
    checkFailed(run.command->wait(FAILS_WITHIN_S), {program, "cluster.mpirun"});
  }
}

}  // namespace
}  // namespace tests
