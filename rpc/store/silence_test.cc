// Connections that nobody closes and over which nothing arrives any more, as if the other machine
// had lost power. A filter on the socket drops all incoming packets, including acknowledgements.
#include <doctest/doctest.h>
#include <kj/debug.h>
#include <linux/filter.h>
#include <sys/socket.h>

#include "rpc/testing/test_identity.h"
#include "rpc/testing/test_server.h"
#include "rpc/testing/test_threads.h"
#include "rpc/wire/peer.h"

namespace rpc {
namespace {

constexpr auto SILENCE = 1 * kj::SECONDS;
// Only a failing test waits this long.
constexpr auto PATIENCE = 20 * kj::SECONDS;

void dropArriving(int socket) {
  sock_filter dropAll[] = {BPF_STMT(BPF_RET | BPF_K, 0)};
  sock_fprog program = {1, dropAll};
  KJ_SYSCALL(::setsockopt(socket, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program)));
}

// A worker's end of a connection over TCP, and a server that waits for a second worker.
struct OverTcp {
  kj::AsyncIoContext io = kj::setupAsyncIo();
  Placement placement = placeBalanced(makeKeys({100}), 4096, 1);
  Rounds rounds = roundsOf("dist_sync", 2);
  TestUpdater updater{1};
  kj::Own<Listener> listener = Listener::listen(io.provider->getNetwork(), TCP).wait(io.waitScope);
  kj::Promise<void> serving =
      listener
          ->serve(io.provider->getTimer(), limitsFor(placement),
              newShardServer(placement, 0, rounds, updater).service, testIdentity())
          .eagerlyEvaluate(nullptr);
  kj::Own<kj::AsyncIoStream> owned = connect(
      io.provider->getNetwork(), listener->address(), TCP, testIdentity(), testIdentity().name)
                                         .wait(io.waitScope);
  const int socket = owned->getFd().orDefault(-1);
  Peer peer{kj::mv(owned), limitsFor(placement, SILENCE)};

  capnp::RemotePromise<ShardService::HelloResults> hello() {
    auto request = peer.bootstrap().castAs<ShardService>().helloRequest();
    request.setWorkers(2);
    request.setMode(kj::str(rounds));
    request.setPlacement(placement.digest());
    return request.send();
  }

  bool breaks() {
    auto broken = peer.onDisconnect().then([]() { return true; });
    auto over = io.provider->getTimer().afterDelay(PATIENCE).then([]() { return false; });
    return broken.exclusiveJoin(kj::mv(over)).wait(io.waitScope);
  }
};

TEST_CASE("Peer: a silent connection breaks even if no call is in flight") {
  OverTcp link;
  link.hello().wait(link.io.waitScope);
  dropArriving(link.socket);
  CHECK(link.breaks());
}

TEST_CASE(
    "Peer: a silent connection breaks with a call in flight, which then fails as disconnected") {
  OverTcp link;
  link.hello().wait(link.io.waitScope);
  dropArriving(link.socket);
  auto call = link.hello();
  CHECK(link.breaks());
  auto type = call.then([](auto&&) { return kj::Exception::Type::FAILED; },
                      [](kj::Exception&& e) { return e.getType(); })
                  .wait(link.io.waitScope);
  CHECK(type == kj::Exception::Type::DISCONNECTED);
}

TEST_CASE("Peer: a connection does not count as silent while a call takes long") {
  OverTcp link;
  auto session = link.hello().wait(link.io.waitScope).getSession();
  auto request = session.initializeRequest();
  auto values = kj::heapArray<float>(link.placement.parameters());
  for (auto& value: values) value = 0;
  Bench::set(request.initValues(1)[0], 0, values);
  request.send().wait(link.io.waitScope);
  // Waits for the other worker, which never comes.
  auto start = session.startRequest().send().ignoreResult().then([]() { return true; });
  auto broken = link.peer.onDisconnect().then([]() { return true; });
  auto later = link.io.provider->getTimer().afterDelay(3 * SILENCE).then([]() { return false; });
  CHECK_FALSE(
      start.exclusiveJoin(kj::mv(broken)).exclusiveJoin(kj::mv(later)).wait(link.io.waitScope));
}

TEST_CASE(
    "RemoteStore: after a connection fell silent, the worker reconnects and repeats its calls") {
  auto keys = makeKeys({1000, 10, 5000});
  auto placement = placeBalanced(keys, 4096, 2);
  auto rounds = roundsOf("dist_sync", 1);
  TestUpdater updater(1);
  auto servers = startServers(placement, rounds, updater);
  kj::MutexGuarded<kj::Vector<int>> sockets;
  Worker worker(placement, rounds, 0, servers, [&](kj::Own<kj::AsyncIoStream> stream) {
    breakOnSilence(*stream, SILENCE);
    sockets.lockExclusive()->add(KJ_ASSERT_NONNULL(stream->getFd()));
    return stream;
  });
  for (auto& value: worker.parameters) value = 0;
  for (auto& value: worker.gradients) value = 1;
  worker.store->initialize();
  constexpr uint STEPS = 5;
  for (uint64_t step = 0; step < STEPS; step++) {
    worker.store->await(step, 0, placement.parameters());
    if (step == 2) {
      auto all = sockets.lockExclusive();
      for (auto socket: *all) dropArriving(socket);
    }
    worker.store->push(step, 0, placement.parameters());
  }
  worker.store->rest();
  uint64_t wrong = 0;
  for (float value: worker.parameters) wrong += value != STEPS;
  CHECK(wrong == 0);
  for (auto& traffic: worker.store->traffic()) CHECK(traffic.reconnects == 1);
}

}  // namespace
}  // namespace rpc
