#include "rpc/wire/peer.h"

#include <capnp/message.h>
#include <capnp/rpc.capnp.h>
#include <capnp/serialize.h>
#include <doctest/doctest.h>
#include <kj/debug.h>
#include <sys/socket.h>
#include <unistd.h>

namespace rpc {
namespace {

TEST_CASE("Peer: reads what the other end sent before it left, even if writing fails") {
  auto io = kj::setupAsyncIo();
  int fds[2];
  KJ_SYSCALL(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds));
  kj::AutoCloseFd own(fds[0]), other(fds[1]);
  Peer peer(
      io.lowLevelProvider->wrapSocketFd(kj::mv(own), kj::LowLevelAsyncIoProvider::ALREADY_CLOEXEC),
      {});
  auto answered = peer.bootstrap().whenResolved();
  io.waitScope.poll();
  // The other end reads the call, answers and leaves while this end does not run.
  char question[4096];
  KJ_REQUIRE(::read(other, question, sizeof(question)) > 0);
  capnp::MallocMessageBuilder message;
  auto answer = message.initRoot<capnp::rpc::Message>().initReturn();
  answer.setAnswerId(0);
  answer.initException().setReason("the answer");
  capnp::writeMessageToFd(other, message);
  other = nullptr;
  // This end writes before it reads.
  auto further = peer.bootstrap().whenResolved();
  auto reasonOf = [&](kj::Promise<void> promise) {
    kj::String reason;
    promise.then([]() {}, [&](kj::Exception&& e) { reason = kj::str(e.getDescription()); })
        .wait(io.waitScope);
    return reason;
  };
  CHECK(reasonOf(kj::mv(answered)) == "remote exception: the answer");
  // This end notices that the other end has disconnected.
  CHECK(reasonOf(kj::mv(further)) == "Peer disconnected.");
  peer.onDisconnect().wait(io.waitScope);
}

}  // namespace
}  // namespace rpc
