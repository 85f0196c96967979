// Jobs over the nodes of a Slurm of their own.
#include <doctest/doctest.h>
#include <kj/debug.h>
#include <signal.h>

#include "tests/faults/failure.h"
#include "tests/hosts/conditions.h"
#include "tests/hosts/hosts.h"
#include "tests/skip.h"
#include "tests/text.h"

namespace tests {
namespace {

constexpr kj::StringPtr SHORT = "tests/faults/short.toml"_kj;
constexpr uint NODES = 4;
constexpr kj::StringPtr ROLES[] = {"cluster.servers=2"_kj, "cluster.workers=3"_kj};
constexpr kj::StringPtr DAEMONS[] = {
    "/usr/sbin/munged"_kj, "/usr/sbin/slurmctld"_kj, "/usr/sbin/slurmd"_kj, "srun"_kj};

// Starts a Slurm over four hosts. Its controller is on h1. $1: the folder of its files.
constexpr kj::StringPtr CONFIGURE = R"sh(
set -e
cd "$1"
mkdir state log
head -c 128 /dev/urandom > munge.key
chmod 400 munge.key
cat > slurm.conf <<END
ClusterName=test
SlurmctldHost=h1
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
CredType=cred/munge
AuthInfo=socket=/run/munge.sock
MpiDefault=none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
TaskProlog=$1/variables.sh
JobAcctGatherType=jobacct_gather/none
SwitchType=switch/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmdParameters=config_overrides
SchedulerParameters=sched_min_interval=100000,batch_sched_delay=0
ReturnToService=2
SlurmdTimeout=10
KillWait=2
StateSaveLocation=$1/state
SlurmdSpoolDir=/run/slurm-spool
SlurmctldPidFile=/run/slurmctld.pid
SlurmdPidFile=/run/slurmd.pid
SlurmctldLogFile=$1/log/slurmctld.log
SlurmdLogFile=$1/log/slurmd-%h.log
NodeName=h[1-4] NodeAddr=h[1-4] CPUs=8 RealMemory=100 State=UNKNOWN
PartitionName=main Nodes=h[1-4] Default=YES MaxTime=INFINITE State=UP
END
# Slurm gives tasks what it prints. See Hosts::setVariables().
printf '%s\n' '#!/bin/sh' 'sed "s/^/export /" /tmp/home/.ssh/environment' > variables.sh
chmod +x variables.sh
[ -e /sys/fs/cgroup/cgroup.controllers ] || echo CgroupPlugin=cgroup/v1 > cgroup.conf
)sh"_kj;

constexpr kj::StringPtr START_NODE = R"sh(
set -e
PATH=$PATH:/usr/sbin
munged --force --key-file="$1/munge.key" --socket=/run/munge.sock --pid-file=/run/munged.pid \
  --log-file=/run/munged.log --seed-file=/run/munged.seed
[ "$(hostname)" != h1 ] || slurmctld -i -f "$1/slurm.conf"
slurmd -f "$1/slurm.conf"
)sh"_kj;

constexpr kj::StringPtr AWAIT_NODES = R"sh(
for i in $(seq 300); do
  [ "$(sinfo -h -N -t idle 2>/dev/null | wc -l)" != 4 ] || exit 0
  sleep 0.1
done
sinfo -N >&2
exit 1
)sh"_kj;

class Slurm {
public:
  Slurm()
      : hosts(NODES),
        folder(newFolder()),
        runs(newFolder()),
        setting(kj::str("SLURM_CONF=", folder, "/slurm.conf")),
        cache(cacheSetting()) {
    call(0, CONFIGURE);
    for (uint host = 0; host < NODES; host++) call(host, START_NODE);
    call(0, AWAIT_NODES);
  }

  void call(uint host, kj::StringPtr script) const {
    auto ended = start(host, {"sh", "-c", script, "sh", folder})->wait();
    KJ_REQUIRE(ended.exitCode == 0, ended.output, ended.errors);
  }

  kj::Own<Command> start(uint host, kj::ArrayPtr<const kj::StringPtr> words) const {
    kj::StringPtr environment[] = {setting, cache};
    return hosts.start(host, words, environment);
  }

  // Starts `runner run` in an allocation of all nodes.
  kj::Own<Command> run(
      kj::StringPtr file, kj::ArrayPtr<const kj::StringPtr> settings = ROLES) const {
    kj::Vector<kj::StringPtr> words;
    words.addAll(std::initializer_list<kj::StringPtr>{"salloc", "--quiet", "--nodes=4",
        "--ntasks=5", RUNNER, "run", file, "--runs", runs, "--set", "cluster.launcher=slurm"});
    for (auto setting: settings) {
      words.add("--set");
      words.add(setting);
    }
    return start(0, words);
  }

  // Returns a process on a host that has `part` in its command line. Throws if there is none.
  Process find(uint host, kj::StringPtr part) const {
    kj::Maybe<Process> found;
    for (auto& process: hosts.processes(host)) {
      if (contains(process.commandLine, part)) found = kj::mv(process);
    }
    return kj::mv(KJ_REQUIRE_NONNULL(found, "no such process", host, part));
  }

  // Checks that roles end within 5 s on every node.
  void checkNoRoleRuns() const {
    for (uint host = 0; host < NODES; host++) {
      kj::Vector<Process> roles;
      for (auto& process: hosts.processes(host)) {
        if (contains(process.commandLine, "runner role")) roles.add(kj::mv(process));
      }
      CHECK(haveEnded(roles, 5));
    }
  }

  Hosts hosts;
  const kj::String folder, runs, setting, cache;
};

kj::Maybe<kj::String> whyNot() {
  KJ_IF_MAYBE(why, whyNotInstalled(DAEMONS)) return kj::mv(*why);
  KJ_IF_MAYBE(why, Hosts::whyNot()) return kj::mv(*why);
  KJ_IF_MAYBE(e, kj::runCatchingExceptions([]() { Slurm probe; })) {
    return kj::str("Slurm does not start here: ", e->getDescription());
  }
  return nullptr;
}

TEST_CASE("tasks of Slurm on four nodes train the same bits as one machine, also by sbatch") {
  KJ_IF_MAYBE(why, whyNot()) SKIP_CASE(why->cStr());
  auto conditions = conditionsOf(SHORT, ROLES);
  Slurm slurm;
  for (auto& condition: conditions) {
    CAPTURE(condition.name);
    slurm.hosts.setVariables(ODD_HOST, condition.hostVariables);
    auto ended = slurm.run(SHORT, condition.settings)->wait();
    INFO(ended.errors);
    CHECK(ended.exitCode == 0);
    CHECK(contains(ended.output, condition.weightsSha256));
  }
  slurm.hosts.setVariables(ODD_HOST, nullptr);
  // Neither the secret nor the file of hosts.
  auto files = slurm.hosts.shell(0, kj::str("ls ", slurm.runs, "/short/1"));
  CHECK(!contains(files, "secret"));
  CHECK(!contains(files, "rank_hosts"));
  slurm.checkNoRoleRuns();

  // The recipe of docs/clusters.md, outside of an allocation.
  auto script = kj::str(RUNNER, " run ", SHORT,
      " --set cluster.launcher=slurm --set cluster.servers=2 --set cluster.workers=3");
  auto refused = slurm.start(0, {"sh", "-c", script})->wait();
  CHECK(refused.exitCode == 2);
  CHECK(contains(refused.errors, "--dry-run | sbatch"));
  auto submitted =
      slurm.start(0, {"sh", "-c",
                         kj::str(script, " --dry-run | sbatch --nodes=4 --chdir=", slurm.runs,
                             " --output=", slurm.folder, "/out.txt")});
  CHECK(submitted->wait().exitCode == 0);
  auto followed =
      slurm.start(0, {"sh", "-c", kj::str("tail -F ", slurm.folder, "/out.txt 2>/dev/null")});
  CHECK(followed->waitForOutput(conditions[0].weightsSha256));
}

TEST_CASE("a killed task of Slurm is named with its host. Ctrl-C and a lost launcher leave none") {
  KJ_IF_MAYBE(why, whyNot()) SKIP_CASE(why->cStr());
  Slurm slurm;
  auto killed = slurm.run(ENDLESS);
  REQUIRE(killed->waitForOutput("Speed: "));
  // The deal is server 0 and worker 0 on h1, server 1 and worker 1 on h2, worker 2 on h3.
  KJ_SYSCALL(::kill(slurm.find(2, "runner role").pid, SIGKILL));
  checkFailed(killed->wait(FAILS_WITHIN_S), {"worker 2 on h3"});
  slurm.checkNoRoleRuns();

  auto interrupted = slurm.run(ENDLESS);
  REQUIRE(interrupted->waitForOutput("Speed: "));
  KJ_SYSCALL(::kill(slurm.find(0, kj::str(RUNNER, " run ")).pid, SIGINT));
  CHECK(interrupted->wait(FAILS_WITHIN_S).exitCode == 130);
  slurm.checkNoRoleRuns();

  auto lost = slurm.run(ENDLESS);
  REQUIRE(lost->waitForOutput("Speed: "));
  KJ_SYSCALL(::kill(slurm.find(0, kj::str(RUNNER, " run ")).pid, SIGKILL));
  slurm.checkNoRoleRuns();
}

}  // namespace
}  // namespace tests
