// Jobs by ssh on hosts that have no data set, with --copy-data.
#include <doctest/doctest.h>
#include <signal.h>
#include <stdlib.h>

#include "tests/faults/failure.h"
#include "tests/hosts/ssh_job.h"
#include "tests/skip.h"
#include "tests/text.h"

namespace tests {
namespace {

constexpr kj::StringPtr SHORT = "tests/faults/short.toml"_kj;
constexpr kj::StringPtr SETTINGS[] = {"cluster.servers=1"_kj, "train.epochs=1"_kj};
constexpr kj::StringPtr COPYING = "copying the data set to "_kj;

// Removes the data sets from a host.
void takeData(const Hosts& hosts, kj::uint host) {
  hosts.shell(host, "mount -t tmpfs tmpfs /usr/share/datasets");
}

// Gives a host a small disk for copies of data sets. Programs have room elsewhere.
void makeDiskSmall(const Hosts& hosts, kj::uint host) {
  hosts.shell(host,
      "mkdir -p ~/.cache/runner && mount -t tmpfs -o size=16m tmpfs ~/.cache/runner && "
      "mkdir ~/.cache/runner/programs && mount -t tmpfs tmpfs ~/.cache/runner/programs");
}

void makeDiskLarge(const Hosts& hosts, kj::uint host) {
  hosts.shell(host, "mount -o remount,size=1g ~/.cache/runner");
}

// Returns how many MiB were to be copied to h2.
int copied_MiB(kj::StringPtr errors) {
  auto start = kj::str(COPYING, "h2 (");
  auto found = strstr(errors.cStr(), start.cStr());
  REQUIRE(found != nullptr);
  return ::atoi(found + start.size());
}

TEST_CASE("--copy-data trains the same bits on hosts without data, and copies the data once") {
  KJ_IF_MAYBE(why, Hosts::whyNot(SSHD)) SKIP_CASE(why->cStr());
  auto alone = train(SHORT, SETTINGS);
  Hosts hosts(3, SSHD);
  takeData(hosts, 1);
  takeData(hosts, 2);
  auto run = [&]() {
    auto ended = runBySsh(hosts, SHORT, "h2 h3", {"--copy-data", "train.epochs=1"})->wait();
    INFO(ended.errors);
    CHECK(ended.exitCode == 0);
    CHECK(contains(ended.output, alone.weightsSha256));
    return kj::mv(ended.errors);
  };
  auto first = run();
  CHECK(contains(first, kj::str(COPYING, "h2 (")));
  CHECK(contains(first, kj::str(COPYING, "h3 (")));
  CHECK(contains(first, "copying the data set, MiB: h"));
  CHECK_FALSE(contains(run(), COPYING));
  checkNothingLeft(hosts, {0, 1, 2});
}

TEST_CASE("--copy-data also copies packed records that only the machine of runner run has") {
  KJ_IF_MAYBE(why, Hosts::whyNot(SSHD)) SKIP_CASE(why->cStr());
  auto alone = train(SHORT, SETTINGS);
  Hosts hosts(2, SSHD);
  takeData(hosts, 1);
  hosts.shell(
      0, kj::str(cacheSetting(), "; cp -r $RUNNER_CACHE/fashion_mnist-raw-*[0-9a-f] /tmp/packed"));
  auto ended =
      runBySsh(hosts, SHORT, "h2", {"--copy-data", "data.source=/tmp/packed", "train.epochs=1"})
          ->wait();
  INFO(ended.errors);
  CHECK(ended.exitCode == 0);
  CHECK(contains(ended.output, alone.weightsSha256));
}

TEST_CASE("--copy-data copies nothing to a host that has imported the same data itself") {
  KJ_IF_MAYBE(why, Hosts::whyNot(SSHD)) SKIP_CASE(why->cStr());
  Hosts hosts(2, SSHD);
  CHECK(runBySsh(hosts, SHORT, "h2", {"train.epochs=1"})->wait().exitCode == 0);
  takeData(hosts, 1);
  auto ended = runBySsh(hosts, SHORT, "h2", {"--copy-data", "train.epochs=1"})->wait();
  INFO(ended.errors);
  CHECK(ended.exitCode == 0);
  CHECK_FALSE(contains(ended.errors, COPYING));
}

TEST_CASE("the runs of a sweep share one copy of the data on each host") {
  KJ_IF_MAYBE(why, Hosts::whyNot(SSHD)) SKIP_CASE(why->cStr());
  Hosts hosts(2, SSHD);
  takeData(hosts, 1);
  auto ended = runBySsh(hosts, SHORT, "h2",
      {"--copy-data", "--sweep=train.seed=1,2", "sweep.parallel_runs=2", "train.epochs=1"})
                   ->wait();
  INFO(ended.errors);
  CHECK(ended.exitCode == 0);
  CHECK(countOf(ended.errors, COPYING) == 1);
}

TEST_CASE("a run waits while another one copies the same data to its host") {
  KJ_IF_MAYBE(why, Hosts::whyNot(SSHD)) SKIP_CASE(why->cStr());
  Hosts hosts(2, SSHD);
  takeData(hosts, 1);
  auto run = [&]() { return runBySsh(hosts, SHORT, "h2", {"--copy-data", "train.epochs=1"}); };
  CHECK(run()->wait().exitCode == 0);
  hosts.shell(1, "rm ~/.cache/runner/copy-*/training.mdb");
  auto other = hosts.start(1,
      {"sh", "-c",
          "exec flock $(ls ~/.cache/runner/copy-*.lock) sh -c 'echo held; exec sleep infinity'"});
  REQUIRE(other->waitForOutput("held"));
  auto waiting = run();
  CHECK(waiting->waitForErrors("waiting for another run that copies the same data set"));
  other->killGroup(SIGKILL);
  auto ended = waiting->wait();
  INFO(ended.errors);
  CHECK(ended.exitCode == 0);
  CHECK(contains(ended.errors, COPYING));
}

TEST_CASE("a copy of the data that a full disk has cut off continues where it ended") {
  KJ_IF_MAYBE(why, Hosts::whyNot(SSHD)) SKIP_CASE(why->cStr());
  auto alone = train(SHORT, SETTINGS);
  Hosts hosts(2, SSHD);
  takeData(hosts, 1);
  makeDiskSmall(hosts, 1);
  auto failed = runBySsh(hosts, SHORT, "h2", {"--copy-data", "train.epochs=1"})->wait();
  checkFailed(failed, {"host h2 (server 0, worker 0, worker 1): the data set cannot be copied to "
                       "it: /tmp/home/.cache/runner/copy-",
                          "No space left on device", "Free some space"});
  makeDiskLarge(hosts, 1);
  auto ended = runBySsh(hosts, SHORT, "h2", {"--copy-data", "train.epochs=1"})->wait();
  INFO(ended.errors);
  CHECK(ended.exitCode == 0);
  CHECK(contains(ended.output, alone.weightsSha256));
  CHECK(copied_MiB(ended.errors) <= copied_MiB(failed.errors) - 15);
  CHECK(hosts.shell(1, "ls -d ~/.cache/runner/*.part | wc -l") == "0\n");
}

TEST_CASE("a copy of the data whose beginning is damaged is made again") {
  KJ_IF_MAYBE(why, Hosts::whyNot(SSHD)) SKIP_CASE(why->cStr());
  auto alone = train(SHORT, SETTINGS);
  Hosts hosts(2, SSHD);
  takeData(hosts, 1);
  makeDiskSmall(hosts, 1);
  CHECK(runBySsh(hosts, SHORT, "h2", {"--copy-data", "train.epochs=1"})->wait().exitCode == 1);
  hosts.shell(1,
      "printf x | dd conv=notrunc seek=99999 bs=1 "
      "of=$(ls ~/.cache/runner/copy-*.part/training.mdb)");
  makeDiskLarge(hosts, 1);
  auto ended = runBySsh(hosts, SHORT, "h2", {"--copy-data", "train.epochs=1"})->wait();
  INFO(ended.errors);
  CHECK(ended.exitCode == 0);
  CHECK(contains(ended.output, alone.weightsSha256));
}

TEST_CASE(
    "a copy of the data that is damaged later is refused and named, and made again once removed") {
  KJ_IF_MAYBE(why, Hosts::whyNot(SSHD)) SKIP_CASE(why->cStr());
  Hosts hosts(2, SSHD);
  takeData(hosts, 1);
  auto run = [&]() {
    return runBySsh(hosts, SHORT, "h2", {"--copy-data", "train.epochs=1"})->wait();
  };
  CHECK(run().exitCode == 0);
  hosts.shell(1,
      "dd if=/dev/zero conv=notrunc seek=10 bs=1M count=1 "
      "of=$(ls ~/.cache/runner/copy-*/training.mdb)");
  checkFailed(run(), {"worker ", " on h2: ", "/tmp/home/.cache/runner/copy-",
                         "/training.mdb is bad", "Delete this file"});
  hosts.shell(1, "rm ~/.cache/runner/copy-*/training.mdb");
  auto ended = run();
  INFO(ended.errors);
  CHECK(ended.exitCode == 0);
  CHECK(contains(ended.errors, COPYING));
}

}  // namespace
}  // namespace tests
