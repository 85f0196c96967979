// Jobs over several hosts whose roles another system starts.
#include <doctest/doctest.h>
#include <kj/debug.h>
#include <initializer_list>

#include "tests/faults/failure.h"
#include "tests/faults/roles_by_hand.h"
#include "tests/hosts/hosts.h"
#include "tests/skip.h"
#include "tests/text.h"

namespace tests {
namespace {

constexpr kj::StringPtr SHORT = "tests/faults/short.toml"_kj;
constexpr uint HOSTS = 4;

// A job of a server and as many workers as there are other hosts, and its bits on one machine. The
// roles read the resolved file, so they need no --set.
struct JobOnHosts {
  explicit JobOnHosts(kj::StringPtr workers, const Hosts::Settings& settings = {})
      : alone(train(SHORT, {"cluster.servers=1", workers})),
        file(kj::str(alone.folder, "/experiment.toml")),
        hosts(HOSTS, settings) {}

  Command& start(uint host, std::initializer_list<kj::StringPtr> variables,
      std::initializer_list<kj::StringPtr> options) {
    kj::Vector<kj::StringPtr> words;
    words.addAll(std::initializer_list<kj::StringPtr>{RUNNER, "role", file});
    words.addAll(options);
    auto cache = cacheSetting();
    kj::Vector<kj::StringPtr> environment;
    environment.add(cache);
    environment.addAll(variables);
    return *roles.add(hosts.start(host, words, environment));
  }

  void checkBits(Command& coordinator) {
    auto ended = coordinator.wait();
    INFO(ended.errors);
    CHECK(ended.exitCode == 0);
    CHECK(contains(ended.output, alone.weightsSha256));
    for (auto& role: roles) {
      if (role != &coordinator) CHECK(role->wait(FAILS_WITHIN_S).exitCode == 0);
    }
  }

  const Trained alone;
  const kj::String file;
  const kj::String secret = newSecretFile();
  const kj::String folder = kj::str(newFolder(), "/run");
  Hosts hosts;
  kj::Vector<kj::Own<Command>> roles;
};

// Changes the names in a host's /etc/hosts by `change`, a program for sed.
void changeNames(const Hosts& hosts, uint host, kj::StringPtr change) {
  hosts.shell(host, kj::str("sed '", change, "' /etc/hosts > /run/new; cat /run/new > /etc/hosts"));
}

TEST_CASE("TF_CONFIG with host names trains the same bits if each host calls itself 127.0.1.1") {
  KJ_IF_MAYBE(why, Hosts::whyNot()) SKIP_CASE(why->cStr());
  JobOnHosts job("cluster.workers=3");
  for (uint host = 0; host < HOSTS; host++) {
    changeNames(job.hosts, host, kj::str("s/^", Hosts::address(host), " /127.0.1.1 /; /^fd77/d"));
  }
  auto secret = kj::str("RUNNER_SECRET_FILE=", job.secret);
  auto start = [&](uint host, kj::StringPtr type, uint index) -> Command& {
    auto config = kj::str(
        "TF_CONFIG={\"cluster\": {\"chief\": [\"h1:2222\"], \"worker\": [\"h2:2222\", "
        "\"h3:2222\"], "
        "\"ps\": [\"h4:2222\"]}, \"task\": {\"type\": \"",
        type, "\", \"index\": ", index, "}}");
    return job.start(host, {config, secret}, {"--folder", job.folder});
  };
  start(1, "worker", 0);
  start(2, "worker", 1);
  start(3, "ps", 0);
  auto& chief = start(0, "chief", 0);
  job.checkBits(chief);
  CHECK(contains(chief.errors(), kj::str("coordinator listens on ", Hosts::address(0), ":2222")));
  CHECK(contains(readFile(kj::str(job.folder, "/events.jsonl")),
      kj::str("\"joined\":{\"address\":\"", Hosts::address(3), ":2222\"")));
}

TEST_CASE("roles of a job of Kubernetes wait until the coordinator's host has its name") {
  KJ_IF_MAYBE(why, Hosts::whyNot()) SKIP_CASE(why->cStr());
  JobOnHosts job("cluster.workers=2");
  auto secret = kj::str("RUNNER_SECRET_FILE=", job.secret);
  auto start = [&](uint host, kj::StringPtr index, kj::StringPtr role) -> Command& {
    return job.start(host, {kj::str("JOB_COMPLETION_INDEX=", index), secret},
        {"--role", role, "--coordinator", "coordinator:7000"});
  };
  auto& worker = start(1, "1", "worker");
  start(2, "0", "worker");
  start(3, "0", "server");
  REQUIRE(worker.waitForErrors(
      "worker 1 waits for the coordinator at coordinator:7000 (no machine of this name is known)"));
  for (uint host = 0; host < HOSTS; host++) {
    changeNames(job.hosts, host, kj::str("1i ", Hosts::address(0), " coordinator"));
  }
  auto listen = kj::str(Hosts::address(0), ":7000");
  job.checkBits(job.start(
      0, {secret}, {"--role", "coordinator", "--listen", listen, "--folder", job.folder}));
}

// Starts the job of `words` on all hosts, from host 0, with the arguments that `runner role` needs.
void checkRanks(JobOnHosts& job, kj::ArrayPtr<const kj::StringPtr> words) {
  kj::Vector<kj::StringPtr> all;
  all.addAll(words);
  auto program = Command({"realpath", RUNNER}).wait().output;
  kj::String path = kj::heapString(program.slice(0, program.size() - 1));
  all.addAll(std::initializer_list<kj::StringPtr>{path, "role", job.file, "--folder", job.folder});
  auto cache = cacheSetting();
  kj::StringPtr environment[] = {cache};
  auto& ranks = *job.roles.add(job.hosts.start(0, all, environment));
  job.checkBits(ranks);
  auto events = readFile(kj::str(job.folder, "/events.jsonl"));
  for (uint host = 1; host < HOSTS; host++) {
    CHECK(contains(events, kj::str("\"joined\":{\"address\":\"", Hosts::address(host), ":")) ==
          (host == 1));
  }
  CHECK(contains(events, "\"transport\":\"tcp\""));
}

constexpr Hosts::Settings SSHD{.hasSshd = true};

TEST_CASE("mpirun of OpenMPI and mpiexec of MPICH start a job on four hosts") {
  constexpr kj::StringPtr OPENMPI[] = {"mpirun.openmpi"_kj, "--allow-run-as-root"_kj, "-H"_kj,
      "h1,h2,h3,h4"_kj, "-np"_kj, "4"_kj, "-x"_kj, "RUNNER_CACHE"_kj, "-x"_kj,
      "RUNNER_DATASETS"_kj};
  constexpr kj::StringPtr MPICH[] = {
      "mpiexec.mpich"_kj, "-launcher"_kj, "ssh"_kj, "-hosts"_kj, "h1,h2,h3,h4"_kj, "-n"_kj, "4"_kj};
  KJ_IF_MAYBE(why, Hosts::whyNot(SSHD)) SKIP_CASE(why->cStr());
  KJ_IF_MAYBE(why, whyNotInstalled({OPENMPI[0], MPICH[0]})) SKIP_CASE(why->cStr());
  kj::ArrayPtr<const kj::StringPtr> programs[] = {OPENMPI, MPICH};
  for (auto words: programs) {
    CAPTURE(words[0]);
    JobOnHosts job("cluster.workers=2", SSHD);
    checkRanks(job, words);
  }
}

}  // namespace
}  // namespace tests
