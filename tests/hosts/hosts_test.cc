// Which resources the hosts of these tests share, and which they do not.
#include "tests/hosts/hosts.h"

#include <doctest/doctest.h>
#include <kj/debug.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

#include "tests/skip.h"
#include "tests/text.h"

namespace tests {
namespace {

constexpr Hosts::Settings SSHD = {.hasSshd = true};

TEST_CASE("Hosts: each has its own name, address, process ids, HOME, /tmp and /dev/shm") {
  KJ_IF_MAYBE(why, Hosts::whyNot()) SKIP_CASE(why->cStr());
  Hosts hosts(2);
  for (uint host: {0, 1}) {
    CHECK(hosts.shell(host, "hostname") == kj::str(Hosts::name(host), "\n"));
    CHECK(contains(hosts.shell(host, "ip address"), Hosts::address(host)));
    CHECK(hosts.shell(host, "getent hosts h2") == "10.77.0.2       h2\n");
    CHECK(hosts.shell(host, "cat /proc/1/comm") == "bash\n");
  }
  hosts.shell(0, "touch ~/mine /tmp/mine /dev/shm/mine /run/mine");
  CHECK(hosts.shell(1, "ls ~ /tmp/mine /dev/shm /run/mine 2>/dev/null || true") ==
        "/dev/shm:\n\n/tmp/home:\n");
  CHECK(::access("/tmp/mine", F_OK) != 0);

  auto shared = newFolder();
  hosts.shell(0, kj::str("echo hello > ", shared, "/file"));
  CHECK(hosts.shell(1, kj::str("cat ", shared, "/file")) == "hello\n");
}

TEST_CASE("Hosts: a crash ends all processes of a host at once, and no others") {
  KJ_IF_MAYBE(why, Hosts::whyNot()) SKIP_CASE(why->cStr());
  Hosts hosts(2);
  CHECK(hosts.processes(0).size() == 0);
  kj::Own<Command> sleeping[2];
  for (uint host: {0, 1}) {
    sleeping[host] = hosts.start(host, {"sh", "-c", "setsid sleep 1000 & echo there; wait"});
    REQUIRE(sleeping[host]->waitForOutput("there"));
  }
  auto before = hosts.processes(0);
  CHECK(before.size() >= 2);
  hosts.crash(0);
  CHECK(hosts.processes(0).size() == 0);
  CHECK(haveEnded(before, 0));
  CHECK(hosts.processes(1).size() >= 2);
  CHECK(sleeping[0]->wait().signal == SIGKILL);
  sleeping[1]->killGroup(SIGKILL);

  hosts.reboot(0);
  CHECK(hosts.processes(0).size() == 0);
  CHECK(hosts.shell(0, "hostname") == "h1\n");
}

TEST_CASE("Hosts: the connections of a crashed host stay open elsewhere, and silent") {
  KJ_IF_MAYBE(why, Hosts::whyNot(SSHD)) SKIP_CASE(why->cStr());
  Hosts hosts(2, SSHD);
  auto session = hosts.start(0, {"ssh", "h2", "echo there; sleep 1000"});
  REQUIRE(session->waitForOutput("there"));
  hosts.crash(1);
  // It would end immediately if a segment with FIN or RST arrived.
  CHECK_FALSE(session->waitForOutput("never", 1));
  CHECK(hosts.processes(0).size() > 0);
  // Once the host is back, it does not know the connection.
  hosts.reboot(1);
  CHECK(hosts.shell(0, "ssh h2 hostname") == "h2\n");
}

TEST_CASE("Hosts: ssh runs commands on every host, over either IP version") {
  KJ_IF_MAYBE(why, Hosts::whyNot(SSHD)) SKIP_CASE(why->cStr());
  Hosts hosts(3, SSHD);
  CHECK(hosts.shell(0, "for i in 1 2 3; do ssh h$i 'hostname; echo $HOME'; done") ==
        "h1\n/tmp/home\nh2\n/tmp/home\nh3\n/tmp/home\n");
  CHECK(hosts.shell(2, kj::str("ssh ", Hosts::ipv6Address(1), " hostname")) == "h2\n");
  // sshd ends a session a moment after its client.
  for (uint host: {0, 1, 2}) CHECK(haveEnded(hosts.processes(host), 5));
}

TEST_CASE("Hosts: variables of a host reach what start() and ssh start there, and no other host") {
  KJ_IF_MAYBE(why, Hosts::whyNot(SSHD)) SKIP_CASE(why->cStr());
  Hosts hosts(2, SSHD);
  hosts.setVariables(1, {"A=first value", "B=2"});
  constexpr kj::StringPtr PRINT = "echo \"$A\" $B"_kj;
  CHECK(hosts.shell(1, PRINT) == "first value 2\n");
  CHECK(hosts.shell(0, kj::str("ssh h2 '", PRINT, "'")) == "first value 2\n");
  CHECK(hosts.shell(0, PRINT) == "\n");
  hosts.setVariables(1, nullptr);
  CHECK(hosts.shell(0, kj::str("ssh h2 '", PRINT, "'")) == "\n");
}

TEST_CASE("Hosts: each has its own monotonic clock") {
  KJ_IF_MAYBE(why, Hosts::whyNot(SSHD)) SKIP_CASE(why->cStr());
  if (::access("/proc/self/ns/time", F_OK) != 0) SKIP_CASE("this kernel has no time namespaces");
  Hosts hosts(2, SSHD);
  constexpr kj::StringPtr SECONDS = "cut -d. -f1 /proc/uptime"_kj;
  int here = ::atoi(hosts.shell(0, SECONDS).cStr());
  int there = ::atoi(hosts.shell(0, kj::str("ssh h2 '", SECONDS, "'")).cStr());
  CHECK(here - there > 500);
}

TEST_CASE("Hosts: a host without our libraries runs sshd and cannot run the program") {
  auto settings = SSHD;
  settings.lastLacksLibraries = true;
  KJ_IF_MAYBE(why, Hosts::whyNot(settings)) SKIP_CASE(why->cStr());
  Hosts hosts(2, settings);
  auto line =
      kj::str("cd '", std::filesystem::current_path().c_str(), "' && ", RUNNER, " --version");
  CHECK(hosts.start(0, {"ssh", "h1", line})->wait().exitCode == 0);
  auto ended = hosts.start(0, {"ssh", "h2", line})->wait();
  CHECK(ended.exitCode == 127);
  CHECK(contains(ended.errors, "cannot open shared object file"));
}

TEST_CASE("Hosts: nothing of them stays after the test program was killed") {
  KJ_IF_MAYBE(why, Hosts::whyNot(SSHD)) SKIP_CASE(why->cStr());
  pid_t child;
  int ready[2];
  KJ_SYSCALL(::pipe(ready));
  KJ_SYSCALL(child = ::fork());
  if (child == 0) {
    Hosts hosts(2, SSHD);
    auto mark = kj::str("sleep 1000.", ::getppid());
    auto sleeping = hosts.start(0, {"ssh", "h2", kj::str("echo there; exec ", mark)});
    bool isThere = sleeping->waitForOutput("there");
    (void)!::write(ready[1], &isThere, 1);
    ::pause();
  }
  char isThere = 0;
  CHECK(::read(ready[0], &isThere, 1) == 1);
  CHECK(isThere == 1);
  auto left = processesWith(kj::str("sleep 1000.", ::getpid()));
  CHECK(left.size() > 0);
  KJ_SYSCALL(::kill(child, SIGKILL));
  CHECK(haveEnded(left, PATIENCE_S));
  int status;
  KJ_SYSCALL(::waitpid(child, &status, 0));
}

}  // namespace
}  // namespace tests
