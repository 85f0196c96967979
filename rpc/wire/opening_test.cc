#include "rpc/wire/opening.h"

#include <doctest/doctest.h>
#include <kj/debug.h>
#include <string.h>

#include "rpc/wire/encryption.h"
#include "rpc/wire/listener.h"

namespace rpc {
namespace {

using Stream = kj::Own<kj::AsyncIoStream>;

kj::String failureOf(kj::Promise<Stream> promise, kj::WaitScope& scope) {
  auto failure = kj::runCatchingExceptions([&]() { promise.wait(scope); });
  return kj::str(KJ_REQUIRE_NONNULL(failure).getDescription());
}

// Two roles of a job that uses TLS.
struct Roles {
  Secret secret = Secret::random();
  Identity worker{kj::str("worker 3"), secret, true};
  Identity server{kj::str("server 1"), secret, true};
};

// Passes on the next `size` bytes, and waits for them if necessary.
void pass(kj::AsyncIoStream& from, kj::AsyncIoStream& to, size_t size, kj::WaitScope& scope) {
  auto bytes = kj::heapArray<kj::byte>(size);
  from.read(bytes.begin(), size).wait(scope);
  to.write(bytes.begin(), size).wait(scope);
}

TEST_CASE("open: with TLS, a relay cannot pass on the proofs and then speak for one end") {
  for (bool toCaller: {false, true}) {
    kj::EventLoop loop;
    kj::WaitScope scope(loop);
    Roles roles;
    auto near = kj::newTwoWayPipe(), far = kj::newTwoWayPipe();
    auto called =
        openAsCaller(kj::mv(near.ends[0]), roles.worker, "server 1").eagerlyEvaluate(nullptr);
    auto heard = openAsListener(kj::mv(far.ends[1]), roles.server).eagerlyEvaluate(nullptr);
    pass(*near.ends[1], *far.ends[0], 64, scope);
    pass(*far.ends[0], *near.ends[1], 96, scope);
    pass(*near.ends[1], *far.ends[0], 32, scope);
    // Both ends accept the proof. The relay knows no key.
    auto attack = toCaller ? encrypt(kj::mv(near.ends[1]), Secret::random(), End::LISTENER)
                           : encrypt(kj::mv(far.ends[0]), Secret::random(), End::CALLER);
    auto attacking = attack.then([](Stream) {}, [](kj::Exception&&) {}).eagerlyEvaluate(nullptr);
    CHECK(failureOf(toCaller ? kj::mv(called) : kj::mv(heard), scope) == RELAYED);
  }
}

TEST_CASE("open: with TLS, two connections of a job cannot be swapped after their proofs") {
  kj::EventLoop loop;
  kj::WaitScope scope(loop);
  Roles roles;
  Identity other{kj::str("server 2"), roles.secret, true};
  auto near = kj::newTwoWayPipe(), far = kj::newTwoWayPipe();
  auto otherNear = kj::newTwoWayPipe(), otherFar = kj::newTwoWayPipe();
  auto called =
      openAsCaller(kj::mv(near.ends[0]), roles.worker, "server 1").eagerlyEvaluate(nullptr);
  auto heard = openAsListener(kj::mv(far.ends[1]), roles.server).eagerlyEvaluate(nullptr);
  auto otherCalled =
      openAsCaller(kj::mv(otherNear.ends[0]), roles.worker, "server 2").eagerlyEvaluate(nullptr);
  auto otherHeard = openAsListener(kj::mv(otherFar.ends[1]), other).eagerlyEvaluate(nullptr);
  pass(*near.ends[1], *far.ends[0], 64, scope);
  pass(*far.ends[0], *near.ends[1], 96, scope);
  pass(*near.ends[1], *far.ends[0], 32, scope);
  pass(*otherNear.ends[1], *otherFar.ends[0], 64, scope);
  pass(*otherFar.ends[0], *otherNear.ends[1], 96, scope);
  pass(*otherNear.ends[1], *otherFar.ends[0], 32, scope);
  auto there = near.ends[1]->pumpTo(*otherFar.ends[0]).eagerlyEvaluate(nullptr);
  auto back = otherFar.ends[0]->pumpTo(*near.ends[1]).eagerlyEvaluate(nullptr);
  CHECK(failureOf(kj::mv(otherHeard), scope) == RELAYED);
  CHECK(failureOf(kj::mv(called), scope) == RELAYED);
}

TEST_CASE("open: TCP is encrypted if the job uses TLS, and Unix sockets are not") {
  auto io = kj::setupAsyncIo();
  auto& network = io.provider->getNetwork();
  for (bool tls: {false, true}) {
    for (bool isTcp: {false, true}) {
      Roles roles;
      roles.worker.tls = roles.server.tls = tls;
      Stream ends[2];
      if (isTcp) {
        auto receiver = network.parseAddress("127.0.0.1").wait(io.waitScope)->listen();
        auto address = network.parseAddress("127.0.0.1", receiver->getPort()).wait(io.waitScope);
        ends[0] = address->connect().wait(io.waitScope);
        ends[1] = receiver->accept().wait(io.waitScope);
      } else {
        auto pipe = io.provider->newTwoWayPipe();
        ends[0] = kj::mv(pipe.ends[0]);
        ends[1] = kj::mv(pipe.ends[1]);
      }
      auto& raw = *ends[0];
      auto called = openAsCaller(kj::mv(ends[0]), roles.worker, "server 1");
      auto heard = openAsListener(kj::mv(ends[1]), roles.server).eagerlyEvaluate(nullptr);
      auto caller = called.wait(io.waitScope);
      auto listener = heard.wait(io.waitScope);
      CHECK((caller.get() == &raw) == !(tls && isTcp));
      if (isTcp) CHECK(localHostOf(*caller) == "127.0.0.1");
      auto written = caller->write("text", 4);
      char text[4];
      listener->read(text, 4).wait(io.waitScope);
      written.wait(io.waitScope);
      CHECK(memcmp(text, "text", 4) == 0);
    }
  }
}

}  // namespace
}  // namespace rpc
