#include "tools/bench/links.h"

#include <fcntl.h>
#include <kj/debug.h>
#include <sched.h>
#include <unistd.h>

#include "configs/language/failure.h"
#include "tools/bench/process.h"

namespace tools {
namespace {

// How much a bucket may send at once after a pause: little beside a step's bytes, but enough for
// one large segment.
constexpr kj::StringPtr BURST = "80kb"_kj;
// The least number of packets that TCP hands over at once. A bucket sets a timer for each
// hand-over. With TCP's own choice, these timers take most of two cores at 1 Gbit/s.
constexpr kj::StringPtr SEGMENTS = "32"_kj;
// How many bytes a queue holds before it drops: 1000 frames, as on a Linux host.
constexpr uint QUEUE_BYTES = 1'514'000;
constexpr uint32_t NETWORK = 10 << 24 | 77 << 16;

uint32_t addressOf(uint host) {
  return NETWORK + host + 1;
}

kj::AutoCloseFd currentNamespace() {
  int fd;
  KJ_SYSCALL(fd = ::open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC));
  return kj::AutoCloseFd(fd);
}

// While it lives, this thread is in another network namespace.
class Inside {
public:
  Inside(int home, int there): home(home) { KJ_SYSCALL(::setns(there, CLONE_NEWNET)); }
  ~Inside() noexcept(false) { KJ_SYSCALL(::setns(home, CLONE_NEWNET)); }
  KJ_DISALLOW_COPY(Inside);

private:
  int home;
};

kj::AutoCloseFd newNamespace(int home) {
  KJ_SYSCALL(::unshare(CLONE_NEWNET));
  auto made = currentNamespace();
  KJ_SYSCALL(::setns(home, CLONE_NEWNET));
  return made;
}

// Runs a command, whose words are separated by spaces.
void run(kj::StringPtr line) {
  auto words = split(line, ' ');
  auto ended = runProgram(words);
  if (ended.exitCode == 127) {
    configs::fail("`", words[0], "` could not be started. Install the package iproute2");
  }
  if (ended.exitCode != 0) configs::fail("`", line, "` failed: ", ended.errors);
}

// Sets a value in this namespace. Does nothing if the machine does not have the setting.
void set(kj::StringPtr name, kj::StringPtr value) {
  int fd = ::open(kj::str("/proc/sys/net/", name).cStr(), O_WRONLY | O_CLOEXEC);
  if (fd >= 0) kj::FdOutputStream(kj::AutoCloseFd(fd)).write(value.begin(), value.size());
}

void limit(kj::StringPtr device, uint mbit) {
  run(kj::str("/sbin/tc qdisc add dev ", device, " root tbf rate ", mbit, "mbit burst ", BURST,
      " limit ", QUEUE_BYTES));
}

}  // namespace

Links::Links(uint count, uint mbit): hosts(kj::heapArray<kj::AutoCloseFd>(count)) {
  KJ_REQUIRE(count <= HOSTS_MAX && mbit <= MBIT_MAX, count, mbit);
  if (::geteuid() != 0) {
    configs::fail("hosts are network namespaces, which only root can create. Run it as root");
  }
  home = currentNamespace();
  bridge = newNamespace(home);
  for (auto& host: hosts) host = newNamespace(home);
  {
    Inside inside(home, bridge);
    run("/sbin/ip link add bridge type bridge");
    run("/sbin/ip link set bridge up");
    // Otherwise each packet would pass the tables of firewalls, which do not matter here.
    for (auto kind: {"iptables"_kj, "ip6tables"_kj, "arptables"_kj}) {
      set(kj::str("bridge/bridge-nf-call-", kind), "0");
    }
    for (auto i: kj::indices(hosts)) {
      run(kj::str("/sbin/ip link add port", i, " type veth peer name eth0 netns /proc/", ::getpid(),
          "/fd/", int(hosts[i])));
      run(kj::str("/sbin/ip link set port", i, " master bridge up"));
      limit(kj::str("port", i), mbit);
    }
  }
  for (auto i: kj::indices(hosts)) {
    Inside inside(home, hosts[i]);
    run(kj::str("/sbin/ip address add 10.77.0.", i + 1, "/24 dev eth0"));
    set("ipv4/tcp_min_tso_segs", SEGMENTS);
    run("/sbin/ip link set lo up");
    run("/sbin/ip link set eth0 up");
    // Uses Linux's default algorithm, and not that of this machine. For example, bbr mistakes a
    // link with almost no delay for one with almost no capacity.
    run("/sbin/ip route replace 10.77.0.0/24 dev eth0 congctl cubic");
    limit("eth0", mbit);
  }
}

StreamPair Links::connect(uint from, uint to) {
  kj::Maybe<TcpMeeting> meeting;
  {
    Inside inside(home, hosts[to]);
    meeting.emplace(addressOf(to));
  }
  auto& there = KJ_ASSERT_NONNULL(meeting);
  Inside inside(home, hosts[from]);
  auto near = there.connect();
  return {kj::mv(near), there.accept()};
}

}  // namespace tools
