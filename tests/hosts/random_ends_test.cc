// Jobs by ssh that end at random moments and in random ways leave nothing on any host.
#include <doctest/doctest.h>
#include <kj/async-io.h>
#include <signal.h>

#include <random>

#include "tests/hosts/ssh_job.h"
#include "tests/skip.h"
#include "tests/text.h"

namespace tests {
namespace {

constexpr kj::StringPtr ENDLESS = "tests/faults/endless.toml"_kj;
using kj::uint;

constexpr uint RUNS = 200;
constexpr uint HOSTS = 3;

// Files and sockets that a job may leave on a host. Copies of the program and data sets stay.
kj::String leftBehind(const Hosts& hosts, uint host) {
  return hosts.shell(host,
      "find /tmp /dev/shm -not -path '/tmp/home/*' -type f; grep -c '@' /proc/net/unix || true");
}

kj::Array<Process> launchersOn(const Hosts& hosts) {
  kj::Vector<Process> launchers;
  for (auto& process: hosts.processes(0)) {
    if (contains(process.commandLine, "runner run ")) launchers.add(kj::mv(process));
  }
  return launchers.releaseAsArray();
}

TEST_CASE("200 jobs by ssh that end at random leave no process, socket or file") {
  KJ_IF_MAYBE(why, Hosts::whyNot(SSHD)) SKIP_CASE(why->cStr());
  auto io = kj::setupAsyncIo();
  Hosts hosts(HOSTS, SSHD);
  std::mt19937 random(1);
  auto below = [&](uint end) { return uint(random() % end); };
  kj::Vector<kj::String> before;
  for (uint host = 0; host < HOSTS; host++) before.add(leftBehind(hosts, host));
  for (uint i = 0; i < RUNS; i++) {
    auto run = runBySsh(hosts, ENDLESS, "h1 h2 h3", {"cluster.workers=2"});
    REQUIRE(run->waitForErrors("run "));
    constexpr uint LATEST_MS = 2000;
    io.provider->getTimer().afterDelay(below(LATEST_MS) * kj::MILLISECONDS).wait(io.waitScope);
    // Any process on any host: the launcher, ssh, the agents, the roles.
    auto host = below(HOSTS);
    auto running = hosts.processes(host);
    int signal = below(3) == 0 ? SIGINT : SIGKILL;
    kj::String struck;
    if (running.size() > 0) {
      auto& process = running[below(running.size())];
      struck = kj::str(process.commandLine);
      ::kill(process.pid, signal);
    }
    // Roles ignore SIGINT, and there may have been no process to signal.
    constexpr uint OVER_WITHIN_S = 8;
    if (!haveEnded(launchersOn(hosts), OVER_WITHIN_S)) {
      for (auto& process: launchersOn(hosts)) ::kill(process.pid, SIGINT);
    }
    run->wait();
    INFO("run ", i, ", signal ", signal, " to ", struck.cStr(), " on host ", host);
    checkNothingLeft(hosts, {0, 1, 2});
    for (uint each = 0; each < HOSTS; each++) CHECK(leftBehind(hosts, each) == before[each]);
  }
}

}  // namespace
}  // namespace tests
