#include "runner/launch/ranks.h"

#include <doctest/doctest.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runner/testing/ranks_of.h"
#include "tests/command.h"
#include "tests/text.h"

namespace runner {
namespace {

using tests::contains;

// Returns the line as "RANK TEXT". Empty for a line of the launching command itself.
kj::String shown(ReadRankLine read, kj::StringPtr line) {
  KJ_IF_MAYBE(of, read(line)) return kj::str(of->rank, " ", of->text);
  return kj::str();
}

TEST_CASE("ranks: the lines of OpenMPI, MPICH and Slurm have the rank in front") {
  CHECK(shown(rankLineOfOpenMpi, "[1,3]<stderr>:error: no") == "3 error: no");
  CHECK(shown(rankLineOfOpenMpi, "[prterun-h1-17@1,12]<stdout>: text") == "12 text");
  CHECK(shown(rankLineOfOpenMpi, "[h1:00074] plm:rsh: Warning") == "");
  CHECK(shown(rankLineOfOpenMpi, "Primary job  terminated") == "");
  CHECK(shown(rankLineOfHydra, "[3] error: no") == "3 error: no");
  CHECK(shown(rankLineOfHydra, "[proxy:0:3@h1] main") == "");
  CHECK(shown(rankLineOfHydra, "[3") == "");
  CHECK(shown(rankLineOfSlurm, " 3: error: no") == "3 error: no");
  CHECK(shown(rankLineOfSlurm, "srun: error: h2: task 1: Exited") == "");
}

struct Reported {
  Said said;
  RankReport report{"srun", processes(), rankLineOfSlurm, said};

  static kj::Array<RoleGroup> processes() {
    kj::Vector<RoleGroup> groups;
    for (auto name: {"server 0 on a", "worker 0 on b", "worker 1 on c"}) {
      // The name of the host is the last letter of the line.
      auto host = kj::str(kj::StringPtr(name).slice(kj::StringPtr(name).size() - 1));
      groups.add(RoleGroup{kj::str(name), kj::arr(PlacedRole{Role::WORKER, 0, kj::mv(host)})});
    }
    return groups.releaseAsArray();
  }

  // Returns the reason of the failure that a line gives. Empty if it gives none.
  kj::String take(kj::StringPtr line, Failure::Rank rank = Failure::FAILED) {
    KJ_IF_MAYBE(failure, report.take(line)) {
      CHECK(failure->rank == rank);
      return kj::mv(failure->reason);
    }
    return kj::str();
  }
};

TEST_CASE("ranks: the failure is the first error of a rank that did not just lose another role") {
  Reported run;
  CHECK(run.take("1: warning: slow") == "");
  CHECK(run.take("srun: job 7 queued") == "");
  CHECK(run.take(kj::str("1: ", LOST_A_PEER_LINE)) == "");
  CHECK(run.take("1: error: lost server 0") == "");
  CHECK(run.take("0: error: the disk is full") == "server 0 on a: the disk is full");
  CHECK(Reported().take("2: error: worker 1 on c is late") == "worker 1 on c is late");
  // Later errors follow from the same failure.
  CHECK(run.take("srun: error: a: task 0: Exited with exit code 1") == "");
  CHECK(run.take("2: error: the disk is full") == "");
  CHECK(
      kj::strArray(run.said.lines, "|") == "worker 0 on b: warning: slow|srun: srun: job 7 queued");
}

TEST_CASE("ranks: the failure of a program that cannot be started names its role and host") {
  CHECK(Reported()
            .take("2: env: ‘/a/runner’: No such file or directory")
            .startsWith("worker 1 on c: env: "));
  CHECK(contains(
      Reported().take("1: /a/runner: error while loading shared libraries: libkj.so: cannot open"),
      "worker 0 on b: /a/runner: error while loading shared libraries"));
  CHECK(contains(
      Reported().take("1: /a/runner: /lib/libc.so.6: version `GLIBC_2.99' not found (required)"),
      "GLIBC_2.99"));
}

TEST_CASE(
    "ranks: if ssh cannot reach a host, the failure names the role, the cause and what to do") {
  CHECK(Reported()
            .take("ssh: Could not resolve hostname b: Name or service not known\r")
            .startsWith("worker 0 on b: srun cannot start it: no machine of this name is known; "));
  CHECK(Reported()
            .take("ssh: connect to host c port 22: Connection timed out\r")
            .endsWith("port (ssh: connect to host c port 22: Connection timed out)"));
  CHECK(Reported()
            .take("me@a: Permission denied (publickey).")
            .startsWith(
                "server 0 on a: srun cannot start it: it accepts none of this user's keys; "));
  CHECK(Reported().take("ssh: connect to host c port 22: Odd") ==
        "worker 1 on c: srun cannot start it: ssh: connect to host c port 22: Odd");
  CHECK(Reported()
            .take("ssh: Could not resolve hostname a.x: Name or service not known")
            .startsWith("srun cannot start a role: no machine"));
}

TEST_CASE("ranks: without a rank's own error, the coordinator's reason takes precedence") {
  Reported run;
  CHECK(run.report.judge(0) == nullptr);
  auto failure = KJ_ASSERT_NONNULL(run.report.judge(SIGKILL));
  CHECK(failure.rank == Failure::COMMAND_ENDED);
  CHECK(contains(failure.reason, "srun was killed by signal 9"));
  run.take(kj::str("1: ", LOST_A_PEER_LINE));
  run.take("1: error: lost server 0");
  auto lost = KJ_ASSERT_NONNULL(run.report.judge(1 << 8));
  CHECK(lost.rank == Failure::LOST_A_PEER);
  CHECK(lost.reason == "worker 0 on b: lost server 0");
}

TEST_CASE("ranks: a rank whose device has failed counts as killed") {
  Reported run;
  CHECK(run.take(kj::str("1: ", LOST_DEVICE_LINE)) == "");
  CHECK(run.take("1: error: cuda:0 cannot do that", Failure::KILLED) ==
        "worker 0 on b: cuda:0 cannot do that");
}

TEST_CASE("RankFiles: only the owner may read the secret, and the destructor removes both files") {
  RunFolder folder{tests::newFolder()};
  kj::Vector<RoleGroup> processes;
  processes.add(
      RoleGroup{kj::str("worker 0 on b"), kj::arr(PlacedRole{Role::WORKER, 0, kj::str("b")})});
  kj::Vector<Host> hosts;
  for (auto name: {"a", "b"}) {
    Host host;
    host.name = kj::str(name);
    hosts.add(kj::mv(host));
  }
  kj::String secret, ofHosts;
  auto isThere = [](kj::StringPtr path) { return ::access(path.cStr(), F_OK) == 0; };
  {
    RankFiles files(folder, rpc::Secret::random(), processes, hosts);
    secret = kj::str(files.secret());
    ofHosts = kj::str(files.hosts());
    struct stat about;
    REQUIRE(::stat(secret.cStr(), &about) == 0);
    CHECK((about.st_mode & 0777) == 0600);
    CHECK(tests::readFile(ofHosts) == "b\n");
  }
  CHECK(!isThere(secret));
  CHECK(!isThere(ofHosts));
  RankFiles without(folder, rpc::Secret::random(), processes, nullptr);
  CHECK(isThere(without.secret()));
  CHECK(!isThere(without.hosts()));
}

}  // namespace
}  // namespace runner
