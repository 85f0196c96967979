#include "tests/hosts/slurm_hosts.h"

#include <doctest/doctest.h>
#include <kj/debug.h>

#include <fstream>
#include <sstream>
#include <string>

#include "tests/text.h"

namespace tests {
namespace {

constexpr uint NODES = 4;
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

// Returns the process that started `pid`, or 0 if `pid` has ended.
pid_t parentOf(pid_t pid) {
  std::ifstream stat(kj::str("/proc/", pid, "/stat").cStr());
  // The program's name comes first, in parentheses. It may hold any character.
  std::string line, state;
  std::getline(stat, line);
  pid_t parent = 0;
  std::istringstream(line.substr(line.rfind(')') + 1)) >> state >> parent;
  return parent;
}

}  // namespace

kj::Maybe<kj::String> Slurm::whyNot() {
  KJ_IF_MAYBE(why, whyNotInstalled(DAEMONS)) return kj::mv(*why);
  KJ_IF_MAYBE(why, Hosts::whyNot()) return kj::mv(*why);
  // Starting one takes seconds.
  static auto failure = kj::runCatchingExceptions([]() { Slurm probe; });
  KJ_IF_MAYBE(e, failure) return kj::str("Slurm does not start here: ", e->getDescription());
  return nullptr;
}

Slurm::Slurm()
    : hosts(NODES),
      folder(newFolder()),
      runs(newFolder()),
      setting(kj::str("SLURM_CONF=", folder, "/slurm.conf")),
      cache(cacheSetting()) {
  call(0, CONFIGURE);
  for (uint host = 0; host < NODES; host++) call(host, START_NODE);
  call(0, AWAIT_NODES);
}

kj::String Slurm::call(uint host, kj::StringPtr script) const {
  auto ended = start(host, {"sh", "-c", script, "sh", folder})->wait();
  KJ_REQUIRE(ended.exitCode == 0, ended.output, ended.errors);
  return kj::mv(ended.output);
}

kj::Own<Command> Slurm::start(uint host, kj::ArrayPtr<const kj::StringPtr> words,
    kj::ArrayPtr<const kj::StringPtr> environment) const {
  kj::Vector<kj::StringPtr> all;
  all.add(setting);
  all.add(cache);
  all.addAll(environment);
  return hosts.start(host, words, all);
}

kj::Own<Command> Slurm::run(kj::StringPtr file, kj::ArrayPtr<const kj::StringPtr> settings) const {
  kj::Vector<kj::StringPtr> words;
  words.addAll(kj::ArrayPtr<const kj::StringPtr>({"salloc", "--quiet", "--nodes=4", "--ntasks=5",
      RUNNER, "run", file, "--runs", runs, "--set", "cluster.launcher=slurm"}));
  for (auto setting: settings) {
    words.add("--set");
    words.add(setting);
  }
  return start(0, words);
}

kj::Own<Command> Slurm::submit(kj::StringPtr file, kj::ArrayPtr<const kj::StringPtr> more,
    kj::ArrayPtr<const kj::StringPtr> environment) const {
  kj::Vector<kj::StringPtr> words;
  words.addAll(kj::ArrayPtr<const kj::StringPtr>({RUNNER, "run", file, "--runs", runs, "--set",
      "cluster.launcher=slurm", "--set", "cluster.servers=2", "--set", "cluster.workers=3"}));
  words.addAll(more);
  kj::Vector<kj::StringPtr> all;
  // Otherwise, all tasks go to the first host.
  all.add("SBATCH_SPREAD_JOB=1");
  all.addAll(environment);
  return start(0, words, all);
}

Process Slurm::find(uint host, kj::StringPtr part) const {
  kj::Maybe<Process> found;
  auto processes = hosts.processes(host);
  for (auto& process: processes) {
    if (!contains(process.commandLine, part)) continue;
    // While a process starts another one, there are two processes with the same command line for a
    // moment.
    pid_t parent = parentOf(process.pid);
    bool isCopy = false;
    for (auto& other: processes) {
      isCopy = isCopy || (other.pid == parent && other.commandLine == process.commandLine);
    }
    if (!isCopy) found = Process{process.pid, kj::str(process.commandLine)};
  }
  return kj::mv(KJ_REQUIRE_NONNULL(found, "no such process", host, part));
}

void Slurm::checkNoRoleRuns() const {
  for (uint host = 0; host < NODES; host++) {
    kj::Vector<Process> roles;
    for (auto& process: hosts.processes(host)) {
      if (contains(process.commandLine, "runner role")) roles.add(kj::mv(process));
    }
    CHECK(haveEnded(roles, 5));
  }
}

void Slurm::checkNoJob(kj::StringPtr name) const {
  CHECK(call(0, kj::str("squeue --noheader --name=", name)) == "");
}

}  // namespace tests
