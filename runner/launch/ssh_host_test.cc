#include "runner/launch/ssh_host.h"

#include <doctest/doctest.h>
#include <kj/async-unix.h>
#include <kj/debug.h>
#include <sys/stat.h>

#include "runner/system/files.h"
#include "runner/system/reason.h"
#include "tests/command.h"
#include "tests/text.h"

namespace runner {
namespace {

kj::String explained(std::initializer_list<kj::StringPtr> lines) {
  Host host{.name = kj::str("node2")};
  kj::Vector<kj::String> texts;
  for (auto line: lines) texts.add(kj::str(line));
  return explainSsh(host, "ssh -i key", texts);
}

TEST_CASE("explainSsh: finds the cause among the lines, and says what to do") {
  CHECK(explained({"Warning: Permanently added 'node2' (ED25519) to the list of known hosts.",
            "me@node2: Permission denied (publickey,password)."}) ==
        "it accepts none of this user's keys; copy one there: ssh-copy-id node2 "
        "(me@node2: Permission denied (publickey,password).)");
  CHECK(explained({"ssh: connect to host node2 port 22: Connection timed out"})
            .startsWith("it does not answer; "));
  CHECK(explained({"@ WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED! @",
            "Host key verification failed."}) ==
        "its host key has changed; if that is right, forget the old one: ssh-keygen -R node2 "
        "(@ WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED! @)");
  CHECK(explained({"tar: runner: Cannot write: No space left on device"})
            .startsWith("its disk is full; "));
}

TEST_CASE("explainSsh: passes on a cause that it does not know, and reports if ssh said nothing") {
  CHECK(
      explained({"first", "kex_exchange_identification: Connection closed"}) ==
      "kex_exchange_identification: Connection closed; try `ssh -i key node2` by hand, and remove "
      "~/.cache/runner/programs there if it works");
  CHECK(explained({}).startsWith("ssh ended without a message; try `ssh -i key node2` by hand"));
}

TEST_CASE("explainSsh: passes on the reason why ssh cannot be started") {
  CHECK(explained({"error: cannot start sshx: No such file or directory; is it installed, and on "
                   "the path?"}) ==
        "cannot start sshx: No such file or directory; is it installed, and on the path?");
}

TEST_CASE("SshHost: its connection never becomes one that other programs share") {
  kj::UnixEventPort::captureChildExit();
  auto io = kj::setupAsyncIo();
  // This fake ssh prints its options, and does not reach the host.
  auto ssh = kj::str(tests::newFolder(), "/ssh");
  writeWhole(ssh, "#!/bin/sh\necho \"${*%% -- *}\" >&2\n");
  KJ_SYSCALL(::chmod(ssh.cStr(), 0700));
  Host host{.name = kj::str("node2")};
  SharedPackage package;
  SshHost connection(host, kj::str("host node2"), ssh, package, io, [](kj::StringPtr) {});
  auto failed = kj::runCatchingExceptions([&]() { connection.ready(60).wait(io.waitScope); });
  CHECK(tests::contains(reasonOf(KJ_REQUIRE_NONNULL(failed)), "-o ControlMaster=no"));
}

}  // namespace
}  // namespace runner
