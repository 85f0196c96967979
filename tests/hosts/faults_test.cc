// A failure on one host ends the job with one line, which names the host, the role, the cause and
// what to do. Prints how long that takes. FAULT_LIMIT_S is the time that it may take at most.
// Without it there is no limit, and each fault is tested with one launcher.
#include <doctest/doctest.h>
#include <kj/debug.h>
#include <kj/time.h>
#include <stdlib.h>

#include "tests/faults/failure.h"
#include "tests/faults/roles_by_hand.h"
#include "tests/hosts/launched_run.h"
#include "tests/hosts/ssh_job.h"
#include "tests/skip.h"
#include "tests/text.h"

namespace tests {
namespace {

struct Launcher {
  kj::StringPtr name;
  kj::StringPtr setting;
  kj::StringPtr mpirun;  // empty: it needs none
};

constexpr Launcher SSH{"ssh"_kj, "cluster.launcher=ssh"_kj, ""_kj};
constexpr Launcher OPENMPI{"OpenMPI"_kj, "cluster.launcher=mpi"_kj, "mpirun.openmpi"_kj};
constexpr Launcher MPICH{"MPICH"_kj, "cluster.launcher=mpi"_kj, "mpirun.mpich"_kj};
constexpr Launcher ALL[] = {SSH, OPENMPI, MPICH};
// mpirun copies nothing, and the hosts share what they have imported.
constexpr Launcher COPIES[] = {SSH};
// ssh brings its own program.
constexpr Launcher COPIES_NOTHING[] = {OPENMPI, MPICH};

constexpr kj::StringPtr H2_AND_H3 = R"(cluster.hosts=["h2", "h3"])"_kj;
constexpr kj::StringPtr H2_AND_NOWHERE = R"(cluster.hosts=["h2", "nowhere"])"_kj;

// Listens on port 7000 of h2.
void takePort(Hosts& hosts) {
  hosts.shell(1, "/usr/sbin/sshd -f /run/sshd_config -p 7000 -o PidFile=/run/second.pid");
}

// Drops all that a host sends to another one.
void dropAll(Hosts& hosts, uint from, uint to) {
  hosts.shell(from, kj::str("ip neigh replace ", Hosts::address(to),
                        " lladdr 02:00:00:00:00:99 dev eth0 nud permanent"));
}

// Copies of the program take minutes.
void slowDown(Hosts& hosts) {
  hosts.shell(0, "/usr/sbin/tc qdisc add dev eth0 root tbf rate 20mbit burst 256kb latency 200ms");
}

// Puts a program of another version in place of this one.
void replaceProgram(Hosts& hosts) {
  hosts.shell(2, kj::str("p=$(realpath ", RUNNER, ") && ",
                     "LC_ALL=C sed 's/runner 0\\.1/runner 0.2/g' \"$p\" > /run/runner && ",
                     "chmod +x /run/runner && mount --bind /run/runner \"$p\""));
}

// h2 has server 0 and worker 0, h3 has worker 1.
struct Fault {
  kj::StringPtr name;
  kj::ArrayPtr<const Launcher> launchers;
  kj::StringPtr hosts;
  void (*before)(Hosts&);  // called before the job starts. Null: nothing
  void (*during)(Hosts&);  // called while it trains. Null: it must not train
  kj::Array<kj::StringPtr> words;
  bool isLong = false;  // tested only if there is a limit
};

kj::Array<Fault> faults() {
  kj::Vector<Fault> all;
  using Words = std::initializer_list<kj::StringPtr>;
  auto training = [&](kj::StringPtr name, void (*during)(Hosts&), Words words) -> Fault& {
    return all.add(Fault{name, ALL, H2_AND_H3, nullptr, during, kj::heapArray(words)});
  };
  auto starting = [&](kj::StringPtr name, kj::ArrayPtr<const Launcher> launchers,
                      kj::StringPtr hosts, void (*before)(Hosts&), Words words) -> Fault& {
    return all.add(Fault{name, launchers, hosts, before, nullptr, kj::heapArray(words)});
  };
  constexpr auto SILENT = " silent for 5 s", FAILED = " fail", LIMIT = "cluster.silence_timeout_s";
  training("crash of a worker's host", [](Hosts& hosts) { hosts.crash(2); },
      {"h3", "worker 1", SILENT, FAILED, LIMIT});
  training("crash of a server's host", [](Hosts& hosts) { hosts.crash(1); },
      {"h2", " 0", SILENT, FAILED, LIMIT})
      .isLong = true;
  training("link cut for good", [](Hosts& hosts) { hosts.shell(2, "ip link set eth0 down"); },
      {"h3", "worker 1", SILENT, FAILED, LIMIT})
      .isLong = true;
  training("silent partition", [](Hosts& hosts) { hosts.cut(2); },
      {"h3", "worker 1", SILENT, FAILED, LIMIT})
      .isLong = true;
  training("silent partition between a worker and its server",
      [](Hosts& hosts) { dropAll(hosts, 2, 1); },
      {"worker 1 on h3: lost server 0 on h2 at 10.77.0.2:", "could not be reached for 5 s", LIMIT});
  starting("port taken", ALL, H2_AND_H3, takePort,
      {"server 0 on h2: cannot listen on 10.77.0.2:7000: the port is in use. Choose other ports"});
  constexpr auto UNKNOWN = "no machine of this name is known; correct cluster.hosts";
  starting("wrong host name", ALL, H2_AND_NOWHERE, nullptr, {"worker 1", "nowhere", UNKNOWN});
  starting("wrong host name, and a slow copy to the other host", COPIES, H2_AND_NOWHERE, slowDown,
      {"worker 1", "nowhere", UNKNOWN})
      .isLong = true;
  starting("unreachable host", ALL, R"(cluster.hosts=["h2", "10.77.0.99"])", nullptr,
      {"worker 1", "10.77.0.99", "there is no route to it; check that it is on"});
  starting("host that does not answer", ALL, H2_AND_H3, [](Hosts& hosts) { dropAll(hosts, 2, 0); },
      {"worker 1", "h3", "it does not answer; check that it is on"})
      .isLong = true;
  starting("no room for the program", COPIES, H2_AND_H3,
      [](Hosts& hosts) {
        hosts.shell(2, "mkdir ~/.cache && mount -t tmpfs -o size=16m tmpfs ~/.cache");
      },
      {"host h3 (worker 1): its disk is full; make room in ~/.cache"});
  starting("no room for the data set", COPIES, H2_AND_H3,
      [](Hosts& hosts) {
        hosts.shell(2, "mkdir /tmp/small && mount -t tmpfs -o size=1m tmpfs /tmp/small");
        hosts.setVariables(2, {"RUNNER_CACHE=/tmp/small"});
      },
      {"worker 1 on h3: cannot write the record database /tmp/small/", "free some space"});
  starting("missing data", COPIES, H2_AND_H3,
      [](Hosts& hosts) { hosts.shell(2, "mount -t tmpfs tmpfs /usr/share/datasets"); },
      {"worker 1 on h3: cannot find the data set", "/usr/share/datasets/fashion-mnist is not there",
          "install Debian's package", "--copy-data"});
  starting("another program", COPIES_NOTHING, H2_AND_H3, replaceProgram,
      {"worker 1 on h3 runs another version of the program",
          "install the same version on every host"});
  return all.releaseAsArray();
}

// Returns the limit in seconds. Null: none.
kj::Maybe<int> limit_s() {
  auto text = ::getenv("FAULT_LIMIT_S");
  if (text == nullptr) return nullptr;
  return ::atoi(text);
}

// The time since a fault.
class FaultClock {
public:
  void check(kj::StringPtr fault, kj::StringPtr launcher) const {
    auto passed = clock.now() - begin;
    MESSAGE(kj::str("| ", fault, " | ", launcher, " | ", passed / kj::MILLISECONDS / 1e3, " s |"));
    KJ_IF_MAYBE(limit, limit_s()) CHECK(passed < *limit * kj::SECONDS);
  }

private:
  const kj::MonotonicClock& clock = kj::systemPreciseMonotonicClock();
  const kj::TimePoint begin = clock.now();
};

void checkFault(const Fault& fault, const Launcher& launcher) {
  CAPTURE(fault.name);
  CAPTURE(launcher.name);
  Hosts hosts(3, SSHD);
  if (fault.before != nullptr) fault.before(hosts);
  kj::Vector<kj::StringPtr> settings;
  auto mpirun = kj::str("cluster.mpirun=", launcher.mpirun);
  settings.addAll(std::initializer_list<kj::StringPtr>{
      launcher.setting, fault.hosts, "cluster.servers=1", "log.every=100"});
  if (launcher.mpirun.size() > 0) settings.add(mpirun);
  if (fault.before == takePort) settings.add("cluster.port=\"7000\"");
  FaultClock sinceStart;
  LaunchedRun run(hosts, ENDLESS, settings);
  if (fault.during == nullptr) {
    checkFailed(run.command->wait(), fault.words);
    sinceStart.check(fault.name, launcher.name);
  } else {
    REQUIRE(run.command->waitForOutput("Speed: "));
    FaultClock sinceFault;
    fault.during(hosts);
    checkFailed(run.command->wait(), fault.words);
    sinceFault.check(fault.name, launcher.name);
  }
  checkNothingLeft(hosts, {0, 1});
}

TEST_CASE("a fault on one host ends the job with one line: host, role, cause and way out") {
  KJ_IF_MAYBE(why, Hosts::whyNot(SSHD)) SKIP_CASE(why->cStr());
  KJ_IF_MAYBE(why, whyNotInstalled({OPENMPI.mpirun, MPICH.mpirun})) SKIP_CASE(why->cStr());
  for (auto& fault: faults()) {
    bool isLimited = limit_s() != nullptr;
    if (fault.isLong && !isLimited) continue;
    auto count = isLimited ? fault.launchers.size() : 1;
    for (auto& launcher: fault.launchers.slice(0, count)) checkFault(fault, launcher);
  }
}

TEST_CASE("a role that has another file on its host is told so at once") {
  KJ_IF_MAYBE(why, Hosts::whyNot()) SKIP_CASE(why->cStr());
  Hosts hosts(2);
  auto secret = kj::str("RUNNER_SECRET_FILE=", newSecretFile());
  auto cache = cacheSetting();
  kj::StringPtr environment[] = {secret, cache};
  auto folder = kj::str(newFolder(), "/run");
  auto place = kj::str(hosts.address(0), ":7000");
  auto coordinator = hosts.start(0,
      {RUNNER, "role", ENDLESS, "--role", "coordinator", "--folder", folder, "--listen", place},
      environment);
  REQUIRE(coordinator->waitForErrors("coordinator listens on "));
  FaultClock sinceStart;
  auto role = hosts.start(1,
      {RUNNER, "role", ENDLESS, "--role", "worker", "--index", "1", "--coordinator", place, "--set",
          "train.epochs=3"},
      environment);
  checkFailed(role->wait(), {"worker 1 on h2 was started with a different experiment file",
                                "start all roles with the same file and the same --set"});
  sinceStart.check("another file", "by hand");
}

}  // namespace
}  // namespace tests
