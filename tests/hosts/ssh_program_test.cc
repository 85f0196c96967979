// The copies of the program that launcher ssh makes on hosts.
#include <doctest/doctest.h>
#include <signal.h>

#include "tests/faults/failure.h"
#include "tests/hosts/ssh_job.h"
#include "tests/skip.h"
#include "tests/text.h"

namespace tests {
namespace {

constexpr kj::StringPtr SHORT = "tests/faults/short.toml"_kj;

TEST_CASE("a copy of the program that was cut off continues where it ended") {
  KJ_IF_MAYBE(why, Hosts::whyNot(SSHD)) SKIP_CASE(why->cStr());
  Hosts hosts(2, SSHD);
  hosts.shell(1, "mkdir ~/.cache && mount -t tmpfs -o size=16m tmpfs ~/.cache");
  CHECK(runBySsh(hosts, SHORT, "h2")->wait().exitCode == 1);
  hosts.shell(1, "mount -o remount,size=1g ~/.cache");
  auto before = hosts.shell(1, "cat ~/.cache/runner/programs/*.tar | wc -c");
  CHECK(before != "0\n");
  auto ended = runBySsh(hosts, SHORT, "h2", {"train.epochs=1"})->wait();
  INFO(ended.errors);
  CHECK(ended.exitCode == 0);
  CHECK(hosts.shell(1, "ls ~/.cache/runner/programs | wc -l") == "1\n");
}

TEST_CASE("a program that has changed on a host since it was copied there is copied again") {
  KJ_IF_MAYBE(why, Hosts::whyNot(SSHD)) SKIP_CASE(why->cStr());
  Hosts hosts(2, SSHD);
  auto run = [&]() {
    auto ended = runBySsh(hosts, SHORT, "h2", {"train.epochs=1"})->wait();
    INFO(ended.errors);
    CHECK(ended.exitCode == 0);
    return contains(ended.errors,
        "the copy of this program on h2 has changed or does not start, so it is copied again");
  };
  CHECK_FALSE(run());
  constexpr kj::StringPtr DAMAGES[] = {
      "printf x | dd conv=notrunc seek=9999 bs=1 of=$(ls */runner)"_kj,
      "rm */lib/libarchive.so.13"_kj};
  for (auto damage: DAMAGES) {
    INFO(damage);
    hosts.shell(1, kj::str("cd ~/.cache/runner/programs && ", damage));
    CHECK(run());
  }
  CHECK_FALSE(run());
}

// Gives hosts 1 to 3 the same ~/.cache.
void shareHome(const Hosts& hosts) {
  auto home = newFolder();
  for (kj::uint host: {1, 2, 3}) {
    hosts.shell(host, kj::str("mkdir ~/.cache && mount --bind ", home, " ~/.cache"));
  }
}

TEST_CASE("hosts that share a home folder get one copy of the program, for which they wait") {
  KJ_IF_MAYBE(why, Hosts::whyNot(SSHD)) SKIP_CASE(why->cStr());
  Hosts hosts(4, SSHD);
  shareHome(hosts);
  hosts.shell(1, "mkdir -p ~/.cache/runner");
  auto other = hosts.start(
      1, {"sh", "-c",
             "exec flock ~/.cache/runner/programs.lock sh -c 'echo held; exec sleep infinity'"});
  REQUIRE(other->waitForOutput("held"));
  auto run = runBySsh(hosts, SHORT, "h2 h3 h4", {"train.epochs=1"});
  REQUIRE(run->waitForErrors("h4 waits while another process copies this program"));
  other->killGroup(SIGKILL);
  auto ended = run->wait();
  INFO(ended.errors);
  CHECK(ended.exitCode == 0);
  CHECK(countOf(ended.errors, "copying this program to h") == 1);
  CHECK(hosts.shell(1, "ls ~/.cache/runner/programs | wc -l") == "1\n");
}

TEST_CASE("hosts that share a home folder and cannot lock files do not disturb each other") {
  KJ_IF_MAYBE(why, Hosts::whyNot(SSHD)) SKIP_CASE(why->cStr());
  Hosts hosts(4, SSHD);
  shareHome(hosts);
  for (kj::uint host: {1, 2, 3}) hosts.shell(host, "mount --bind /dev/null $(command -v flock)");
  auto ended = runBySsh(hosts, SHORT, "h2 h3 h4", {"train.epochs=1"})->wait();
  INFO(ended.errors);
  CHECK(ended.exitCode == 0);
  CHECK(hosts.shell(1, "ls ~/.cache/runner/programs | wc -l") == "1\n");
}

}  // namespace
}  // namespace tests
