#include "rpc/wire/listener.h"

#include <doctest/doctest.h>
#include <kj/async-unix.h>
#include <kj/debug.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "rpc/testing/test_identity.h"
#include "rpc/testing/test_server.h"

namespace rpc {
namespace {

constexpr uid_t NOBODY = 65534;

// Connects to an abstract Unix socket and begins a proof. Returns how many bytes of the answer
// arrive. For a child process, which must not use the event loop of its parent.
int answeredBytes(kj::StringPtr address) {
  constexpr kj::StringPtr PREFIX = "unix-abstract:"_kj;
  auto name = address.slice(PREFIX.size());
  sockaddr_un where = {};
  where.sun_family = AF_UNIX;
  memcpy(where.sun_path + 1, name.begin(), name.size());
  socklen_t size = offsetof(sockaddr_un, sun_path) + 1 + name.size();
  int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (::connect(fd, reinterpret_cast<sockaddr*>(&where), size) != 0) return -1;
  char call[64] = {'r', 'u', 'n', 'n', 'e', 'r', 0, 2, 't', 'e', 's', 't'};
  if (::send(fd, call, sizeof(call), MSG_NOSIGNAL) < 0) return 0;
  char answer[96];
  auto n = ::recv(fd, answer, sizeof(answer), MSG_WAITALL);
  return n < 0 ? 0 : n;
}

TEST_CASE("Listener: its Unix socket is closed to other users of the machine") {
  kj::UnixEventPort::captureChildExit();
  auto io = kj::setupAsyncIo();
  auto placement = placeBalanced(makeKeys({100}), 4096, 1);
  auto rounds = roundsOf("dist_sync", 1);
  TestUpdater updater{1};
  auto listener = Listener::listen(io.provider->getNetwork(), TRANSPORTS[0]).wait(io.waitScope);
  auto serving = listener
                     ->serve(io.provider->getTimer(), limitsFor(placement),
                         newShardServer(placement, 0, rounds, updater).service, testIdentity())
                     .eagerlyEvaluate(nullptr);
  auto bytesFor = [&](uid_t user) {
    kj::Maybe<pid_t> child = ::fork();
    auto& pid = KJ_ASSERT_NONNULL(child);
    if (pid == 0) ::_exit(::setuid(user) == 0 ? answeredBytes(listener->address().local) : 255);
    auto status = io.unixEventPort.onChildExit(child).wait(io.waitScope);
    return WEXITSTATUS(status);
  };
  CHECK(bytesFor(0) == 96);
  CHECK(bytesFor(NOBODY) == 0);
}

}  // namespace
}  // namespace rpc
