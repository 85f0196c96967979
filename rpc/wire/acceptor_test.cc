#include "rpc/wire/acceptor.h"

#include <doctest/doctest.h>
#include <kj/debug.h>
#include <kj/vector.h>
#include <sys/resource.h>

#include <deque>

#include "rpc/testing/test_identity.h"
#include "rpc/testing/test_server.h"
#include "rpc/wire/opening.h"

namespace rpc {
namespace {

// Connections that a test makes. It can make the first attempts to accept fail.
class TestReceiver final: public kj::ConnectionReceiver {
public:
  uint accepted = 0;
  uint failures = 0;  // to come

  // Returns the other end of a new connection.
  kj::Own<kj::AsyncIoStream> connect() {
    auto pipe = kj::newTwoWayPipe();
    waiting.push_back(kj::mv(pipe.ends[0]));
    KJ_IF_MAYBE(f, fulfiller) (*f)->fulfill();
    return kj::mv(pipe.ends[1]);
  }

  kj::Promise<kj::Own<kj::AsyncIoStream>> accept() override {
    if (waiting.empty()) {
      auto paf = kj::newPromiseAndFulfiller<void>();
      fulfiller = kj::mv(paf.fulfiller);
      return paf.promise.then([this]() { return accept(); });
    }
    if (failures > 0) {
      failures--;
      return KJ_EXCEPTION(OVERLOADED, "accept(): Too many open files");
    }
    accepted++;
    auto stream = kj::mv(waiting.front());
    waiting.pop_front();
    return kj::mv(stream);
  }
  uint getPort() override { return 0; }

private:
  std::deque<kj::Own<kj::AsyncIoStream>> waiting;
  kj::Maybe<kj::Own<kj::PromiseFulfiller<void>>> fulfiller;
};

// A server of one worker behind serveAll(), on a virtual clock.
struct Served {
  Bench bench{makeKeys({10000}), "dist_sync", 1};
  kj::TimerImpl timer{kj::origin<kj::TimePoint>()};
  TestReceiver receiver;
  kj::Promise<void> serving;

  explicit Served(StrangerLimits strangers = {})
      : serving(serveAll(
            timer, receiver, limitsFor(bench.placement), bench.server, testIdentity(), strangers)
                    .eagerlyEvaluate(nullptr)) {}

  // The objects that a worker needs to call the server, once it has proven who it is.
  kj::Promise<kj::Own<Peer>> connectWorker() {
    return openAsCaller(receiver.connect(), testIdentity(), testIdentity().name)
        .then([this](kj::Own<kj::AsyncIoStream> stream) {
          return kj::heap<Peer>(kj::mv(stream), limitsFor(bench.placement));
        });
  }

  // Runs everything that can run at this time.
  void settle() { kj::Promise<void>(kj::NEVER_DONE).poll(bench.scope); }
  // Advances the clock at once, as if the process had been stopped meanwhile.
  void pass(kj::Duration time) {
    settle();
    timer.advanceTo(timer.now() + time);
    settle();
  }
  void run(kj::Duration time) {
    for (auto end = timer.now() + time; timer.now() < end;) pass(100 * kj::MILLISECONDS);
  }
  // Whether the server has closed its end.
  bool isClosed(kj::AsyncIoStream& stream) {
    char bytes[1 << 16];
    auto read = stream.tryRead(bytes, sizeof(bytes), sizeof(bytes));
    return read.poll(bench.scope);
  }
};

TEST_CASE("serveAll: a peer that proves nothing is disconnected in time, and a worker stays") {
  Served served;
  auto silent = served.receiver.connect();
  auto worker = served.connectWorker().wait(served.bench.scope);
  auto service = worker->bootstrap().castAs<ShardService>();
  served.bench.hello(service, 0, 1).wait(served.bench.scope);
  served.run(4900 * kj::MILLISECONDS);
  CHECK_FALSE(served.isClosed(*silent));
  served.run(200 * kj::MILLISECONDS);
  CHECK(served.isClosed(*silent));
  served.pass(3600 * kj::SECONDS);
  service.countsRequest().send().wait(served.bench.scope);
}

TEST_CASE("serveAll: time in which the server itself was stopped does not count for a stranger") {
  Served served;
  auto silent = served.receiver.connect();
  served.run(1 * kj::SECONDS);
  served.pass(1 * kj::HOURS);
  served.run(3500 * kj::MILLISECONDS);
  CHECK_FALSE(served.isClosed(*silent));
  served.run(200 * kj::MILLISECONDS);
  CHECK(served.isClosed(*silent));
}

TEST_CASE(
    "serveAll: if there are too many strangers, the oldest one is disconnected after a second") {
  Served served({.connections = 2});
  kj::Own<kj::AsyncIoStream> strangers[3];
  for (auto& each: strangers) each = served.receiver.connect();
  served.run(500 * kj::MILLISECONDS);
  // The server is stopped for an hour. Of that, 400 ms count.
  served.pass(1 * kj::HOURS);
  CHECK_FALSE(served.isClosed(*strangers[0]));
  served.run(200 * kj::MILLISECONDS);
  CHECK(served.isClosed(*strangers[0]));
  CHECK_FALSE(served.isClosed(*strangers[1]));
  CHECK_FALSE(served.isClosed(*strangers[2]));
}

TEST_CASE("serveAll: a stranger has all of its time while nobody waits for its place") {
  Served served({.connections = 2});
  kj::Own<kj::AsyncIoStream> strangers[2];
  for (auto& each: strangers) each = served.receiver.connect();
  served.run(4900 * kj::MILLISECONDS);
  for (auto& each: strangers) CHECK_FALSE(served.isClosed(*each));
  auto third = served.receiver.connect();
  served.pass(0 * kj::MILLISECONDS);
  CHECK(served.isClosed(*strangers[0]));
  CHECK_FALSE(served.isClosed(*strangers[1]));
  CHECK_FALSE(served.isClosed(*third));
}

TEST_CASE("serveAll: strangers at all sockets of a process leave it half of its descriptors") {
  constexpr uint SOCKETS = 16, STRANGERS_EACH = 4;
  rlimit before;
  KJ_SYSCALL(::getrlimit(RLIMIT_NOFILE, &before));
  KJ_DEFER(::setrlimit(RLIMIT_NOFILE, &before));
  rlimit low = {2 * SOCKETS * STRANGERS_EACH, before.rlim_max};
  KJ_SYSCALL(::setrlimit(RLIMIT_NOFILE, &low));
  Served served;
  auto limits = limitsFor(served.bench.placement);
  TestReceiver others[SOCKETS - 1];
  kj::Vector<kj::Promise<void>> serving;
  for (auto& each: others) {
    serving.add(serveAll(served.timer, each, limits, served.bench.server, testIdentity())
                    .eagerlyEvaluate(nullptr));
  }
  kj::Own<kj::AsyncIoStream> strangers[2 * STRANGERS_EACH];
  for (auto& each: strangers) each = served.receiver.connect();
  served.settle();
  // One more waits for a place.
  CHECK(served.receiver.accepted == STRANGERS_EACH + 1);
}

TEST_CASE("serveAll: sockets and timers are served however fast connections arrive") {
  constexpr uint FLOOD = 1000;
  StrangerLimits limits;
  Served served(limits);
  // No stranger stays, so there is always room for the next one.
  for (uint i = 0; i < FLOOD; i++) served.receiver.connect();
  served.settle();
  CHECK(served.receiver.accepted == limits.accepted);
  served.pass(limits.pause);
  CHECK(served.receiver.accepted == 2 * limits.accepted);
  while (served.receiver.accepted < FLOOD) served.pass(limits.pause);
  auto connecting = served.connectWorker();
  served.pass(limits.pause);
  auto worker = connecting.wait(served.bench.scope);
}

TEST_CASE(
    "serveAll: a stranger that leaves makes room at once, and a worker takes no stranger's place") {
  Served served({.connections = 1});
  auto worker = served.connectWorker().wait(served.bench.scope);
  auto service = worker->bootstrap().castAs<ShardService>();
  served.bench.hello(service, 0, 1).wait(served.bench.scope);
  auto first = served.receiver.connect(), second = served.receiver.connect();
  auto third = served.receiver.connect();
  served.settle();
  // The last stranger waits for a place.
  CHECK(served.receiver.accepted == 3);
  first = nullptr;
  served.settle();
  CHECK(served.receiver.accepted == 4);
  CHECK_FALSE(served.isClosed(*second));
  CHECK_FALSE(served.isClosed(*third));
}

TEST_CASE(
    "serveAll: connections wait while the process has no free descriptor, and are served later") {
  Served served;
  served.receiver.failures = 3;
  auto connecting = served.connectWorker();
  CHECK_FALSE(connecting.poll(served.bench.scope));
  for (uint i = 0; i < 3; i++) served.pass(100 * kj::MILLISECONDS);
  CHECK(served.receiver.failures == 0);
  connecting.wait(served.bench.scope);
}

TEST_CASE("serveAll: a peer that does not begin with a proof is disconnected immediately") {
  Served served;
  auto stranger = served.receiver.connect();
  stranger->write("GET / HT", 8).wait(served.bench.scope);
  served.settle();
  CHECK(served.isClosed(*stranger));
}

TEST_CASE("serveAll: a peer without the secret is disconnected, whatever follows its proof") {
  Served served;
  auto stranger = served.receiver.connect();
  Identity other{kj::str(testIdentity().name), Secret::random()};
  auto failure = kj::runCatchingExceptions(
      [&]() { proveAsCaller(*stranger, other, other.name).wait(served.bench.scope); });
  CHECK(KJ_ASSERT_NONNULL(failure).getDescription() == WRONG_SECRET);
  kj::byte code[Secret::BYTES] = {};
  stranger->write(code, sizeof(code)).wait(served.bench.scope);
  served.settle();
  CHECK(served.isClosed(*stranger));
}

}  // namespace
}  // namespace rpc
