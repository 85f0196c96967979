#include "tests/hosts/hosts.h"

#include <kj/debug.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <filesystem>

namespace tests {

namespace {

// The files that a host has in place of this machine's.
constexpr kj::StringPtr PRIVATE_FOLDERS[] = {"/tmp/"_kj, "/run/"_kj, "/dev/shm/"_kj};

// Makes the keys of all hosts in the current folder.
constexpr kj::StringPtr MAKE_KEYS = R"sh(
set -e
ssh-keygen -q -t ed25519 -N '' -f id_ed25519
ssh-keygen -q -t ed25519 -N '' -f host_key
cp id_ed25519.pub authorized_keys
echo "* $(cut -d' ' -f1-2 host_key.pub)" > known_hosts
)sh"_kj;

// Process 1 of host $1, which copies from the folder $2. $3: whether it runs sshd. $4: if not
// empty, the program whose libraries it lacks. The shell waits, because process 1 must collect the
// orphans of its host.
constexpr kj::StringPtr INIT = R"sh(
set -e
read -r pid rest < /proc/self/stat    # as this machine counts, until the next line
mount -t proc proc /proc
mount -t tmpfs -o mode=1777 tmpfs /tmp
mount -t tmpfs -o mode=1777 tmpfs /dev/shm
mount -t tmpfs -o mode=755 tmpfs /run
hostname "$1"
replace() { mount --bind "$1" "$2"; }
sed 's|^\(root:[^:]*:[^:]*:[^:]*:[^:]*\):[^:]*:|\1:/tmp/home:|' /etc/passwd > /run/passwd
echo 'hosts: files' > /run/nsswitch.conf
cp "$2/hosts" /run/hosts
replace /run/passwd /etc/passwd
replace /run/nsswitch.conf /etc/nsswitch.conf
replace /run/hosts /etc/hosts
export HOME=/tmp/home
mkdir -m 700 $HOME $HOME/.ssh
printenv | grep SAN_OPTIONS > $HOME/.ssh/environment || true    # for builds with a sanitizer

if [ -n "$4" ]; then
  needed_by() { ldd "$@" | sed -n 's|.* => \(/[^ ]*\) .*|\1|p' | xargs realpath | sort -u; }
  libraries=/usr/lib/x86_64-linux-gnu
  mkdir /run/upper /run/work
  mount -t overlay -o lowerdir=$libraries,upperdir=/run/upper,workdir=/run/work overlay $libraries
  needed_by "$4" > /run/ours
  needed_by /usr/sbin/sshd /usr/bin/ssh /usr/bin/tar /usr/bin/bash > /run/theirs
  # What belongs to glibc stays.
  grep -vxFf /run/theirs /run/ours | grep ^$libraries/ |
    grep -vE '/lib(m|mvec|dl|rt|anl|util|pthread|resolv)\.so' | xargs rm
fi
if [ "$3" = yes ]; then
  cp "$2/id_ed25519" "$2/authorized_keys" "$2/known_hosts" $HOME/.ssh
  printf '%s\n' 'StrictHostKeyChecking yes' 'BatchMode yes' > $HOME/.ssh/config
  mkdir /run/sshd
  (umask 077; cp "$2/host_key" /run/host_key)
  printf '%s\n' 'HostKey /run/host_key' 'UsePAM no' 'StrictModes no' 'PidFile /run/sshd.pid' \
    'PermitRootLogin prohibit-password' 'MaxStartups 100:30:200' 'PermitUserEnvironment yes' \
    > /run/sshd_config
  /usr/sbin/sshd -f /run/sshd_config
  until [ -s /run/sshd.pid ]; do sleep 0.01; done
fi
sleep infinity &
echo "pid $pid"
wait
)sh"_kj;

Ended call(kj::ArrayPtr<const kj::StringPtr> words, kj::StringPtr folder = nullptr) {
  return Command(words, {.folder = folder}).wait();
}

void mustCall(kj::ArrayPtr<const kj::StringPtr> words, kj::StringPtr folder = nullptr) {
  auto ended = call(words, folder);
  KJ_REQUIRE(ended.exitCode == 0, kj::strArray(words, " "), ended.output, ended.errors);
}

// Runs a line of shell in the network of process `pid`.
void inNetworkOf(pid_t pid, kj::StringPtr line) {
  mustCall({"nsenter", "-t", kj::str(pid), "-n", "sh", "-ec", line});
}

bool haveTimeNamespaces() {
  return ::access("/proc/self/ns/time", F_OK) == 0;
}

kj::String pidNamespaceOf(pid_t pid) {
  std::error_code gone;
  auto path = std::filesystem::read_symlink(kj::str("/proc/", pid, "/ns/pid").cStr(), gone);
  return kj::str(path.c_str());
}

}  // namespace

kj::Maybe<kj::String> whyNotInstalled(kj::ArrayPtr<const kj::StringPtr> programs) {
  for (auto program: programs) {
    auto ended = call({"sh", "-c", "command -v \"$1\"", "sh", program});
    if (ended.exitCode != 0) return kj::str(program, " is not installed");
  }
  return nullptr;
}

kj::Maybe<kj::String> Hosts::whyNot() {
  return whyNot({});
}

kj::Maybe<kj::String> Hosts::whyNot(const Settings& settings) {
  if (::getuid() != 0) return kj::str("only root can make network namespaces");
  if (settings.hasSshd) {
    KJ_IF_MAYBE(why, whyNotInstalled({"/usr/sbin/sshd", "ssh", "ssh-keygen"})) return kj::mv(*why);
  }
  auto shared = newFolder();
  for (auto folder: PRIVATE_FOLDERS) {
    if (shared.startsWith(folder)) return kj::str("the tests' folder is in ", folder);
  }
  auto make = [&]() { Hosts probe(1, settings); };
  KJ_IF_MAYBE(e, kj::runCatchingExceptions(make)) {
    return kj::str("this machine makes no namespaces: ", e->getDescription());
  }
  return nullptr;
}

Hosts::Hosts(uint count): Hosts(count, {}) {}

Hosts::Hosts(uint count, const Settings& settings)
    : settings(settings),
      count(count),
      folder(newFolder()),
      bridge(kj::heap<Command>(kj::ArrayPtr<const kj::StringPtr>({"unshare", "-n", "sh", "-ec",
          "ip link add br0 type bridge; ip link set br0 up; echo up; exec sleep infinity"}))),
      variables(kj::heapArray<kj::Vector<kj::String>>(count)) {
  KJ_REQUIRE(bridge->waitForOutput("up"), bridge->errors());
  kj::Vector<kj::String> names;
  names.add(kj::str("127.0.0.1 localhost\n::1 localhost\n"));
  for (uint i = 0; i < count; i++) names.add(kj::str(address(i), " ", name(i), "\n"));
  writeFile(kj::str(folder, "/hosts"), kj::strArray(names, ""));
  if (settings.hasSshd) mustCall({"sh", "-c", MAKE_KEYS}, folder);
  for (uint i = 0; i < count; i++) hosts.add(boot(i));
}

kj::Own<Hosts::Host> Hosts::boot(uint host) const {
  auto lacking = settings.lastLacksLibraries && host == count - 1 ? RUNNER : ""_kj;
  auto hostName = name(host);
  auto result = kj::heap<Host>();
  kj::Vector<kj::StringPtr> words;
  words.addAll(std::initializer_list<kj::StringPtr>{
      "unshare", "-n", "-u", "-i", "-p", "-m", "-f", "--kill-child"});
  // As if each host had been switched on a thousand seconds after the next one.
  auto earlier_s = kj::str(1000 * (count - host));
  if (haveTimeNamespaces()) {
    words.addAll(std::initializer_list<kj::StringPtr>{
        "-T", "--monotonic", earlier_s, "--boottime", earlier_s});
  }
  words.addAll(std::initializer_list<kj::StringPtr>{
      "bash", "-c", INIT, "init", hostName, folder, settings.hasSshd ? "yes" : "no", lacking});
  result->init = kj::heap<Command>(words.asPtr());
  KJ_REQUIRE(result->init->waitForOutput("\n"), hostName, result->init->errors());
  result->pid = ::atoi(result->init->output().cStr() + strlen("pid "));
  connect(host, result->pid);
  auto space = pidNamespaceOf(result->pid);
  kj::Vector<Process> itsOwn;
  for (auto& process: processesWith("")) {
    if (pidNamespaceOf(process.pid) == space) itsOwn.add(kj::mv(process));
  }
  result->itsOwn = itsOwn.releaseAsArray();
  return result;
}

void Hosts::connect(uint host, pid_t pid) const {
  // A host keeps its hardware address when it starts again, as the others remember it.
  inNetworkOf(bridge->pid(),
      kj::str("ip link add port", host, " type veth peer name eth0 address 02:00:00:00:00:0",
          host + 1, " netns ", pid, "; ip link set port", host, " master br0 up"));
  inNetworkOf(
      pid, kj::str("ip link set lo up; ip addr add ", address(host), "/24 dev eth0; ip addr add ",
               ipv6Address(host), "/64 dev eth0 nodad; ip link set eth0 up"));
}

kj::Own<Command> Hosts::start(uint host, kj::ArrayPtr<const kj::StringPtr> words,
    kj::ArrayPtr<const kj::StringPtr> environment) const {
  auto pid = kj::str(KJ_REQUIRE_NONNULL(hosts[host], "the host has crashed", host)->pid);
  kj::Vector<kj::StringPtr> all;
  all.addAll(std::initializer_list<kj::StringPtr>{
      "nsenter", "-t", pid, "-n", "-u", "-i", "-p", "-m", "-w"});
  if (haveTimeNamespaces()) all.add("-T");
  // Uses `env`, because variables that affect how programs run must not affect nsenter.
  all.add("env");
  for (auto& variable: variables[host]) all.add(variable);
  all.addAll(words);
  kj::Vector<kj::StringPtr> ofThisMachine;
  ofThisMachine.add("HOME=/tmp/home");
  ofThisMachine.addAll(environment);
  return kj::heap<Command>(all.asPtr(), Command::Surroundings{.environment = ofThisMachine});
}

void Hosts::setVariables(uint host, kj::ArrayPtr<const kj::StringPtr> given) {
  variables[host] = {};
  for (auto each: given) variables[host].add(kj::str(each));
  kj::Vector<kj::String> lines;
  for (auto& each: variables[host]) lines.add(kj::str(each, "\n"));
  shell(host, kj::str("{ printenv | grep SAN_OPTIONS; printf %s '", kj::strArray(lines, ""),
                  "'; } > ~/.ssh/environment"));
}

kj::String Hosts::shell(uint host, kj::StringPtr line) const {
  auto ended = start(host, {"bash", "-c", line})->wait();
  KJ_REQUIRE(ended.exitCode == 0, line, ended.output, ended.errors);
  return kj::mv(ended.output);
}

kj::Array<Process> Hosts::processes(uint host) const {
  kj::Vector<Process> result;
  KJ_IF_MAYBE(there, hosts[host]) {
    auto space = pidNamespaceOf((*there)->pid);
    for (auto& process: processesWith("")) {
      bool isItsOwn = false;
      for (auto& own: (*there)->itsOwn) isItsOwn = isItsOwn || own.pid == process.pid;
      if (!isItsOwn && pidNamespaceOf(process.pid) == space) result.add(kj::mv(process));
    }
  }
  return result.releaseAsArray();
}

void Hosts::onBridge(kj::StringPtr line) const {
  inNetworkOf(bridge->pid(), kj::str("ip ", line));
}

void Hosts::cut(uint host) const {
  onBridge(kj::str("link set port", host, " nomaster"));
}

void Hosts::join(uint host) const {
  onBridge(kj::str("link set port", host, " master br0"));
}

void Hosts::crash(uint host) {
  auto& there = KJ_REQUIRE_NONNULL(hosts[host], "the host has crashed already", host);
  // First the cable: the kernel closes the connections of processes that it kills.
  onBridge(kj::str("link del port", host));
  KJ_SYSCALL(::kill(there->pid, SIGKILL));
  there->init->wait();
  hosts[host] = nullptr;
}

void Hosts::reboot(uint host) {
  KJ_REQUIRE(hosts[host] == nullptr, "the host runs", host);
  hosts[host] = boot(host);
}

}  // namespace tests
