// Tests of workers that offer wrong memory, or write wrong notes.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "rpc/shard/shard_server.h"
#include "rpc/shared_memory/shared_layout.h"
#include "rpc/shared_memory/shared_memory.h"
#include "rpc/testing/test_identity.h"
#include "rpc/testing/test_server.h"
#include "rpc/wire/descriptor.h"
#include "rpc/wire/listener.h"

namespace rpc {
namespace {

// A server and its workers' Unix sockets in one event loop.
struct SharingBench {
  kj::AsyncIoContext io = kj::setupAsyncIo();
  Placement placement;
  WorkerLayout layout{placement};
  Rounds rounds;
  TestUpdater testUpdater{1};
  kj::Own<Listener> listener;
  kj::Promise<void> serving = nullptr;

  SharingBench(): SharingBench({1000, 10}, roundsOf("dist_sync", 2), testUpdater) {}
  SharingBench(std::initializer_list<uint64_t> sizes, const Rounds& rounds, Updater& updater)
      : placement(placeBalanced(makeKeys(sizes), 1 << 20, 1)), rounds(rounds) {
    auto& network = io.provider->getNetwork();
    listener = Listener::listen(network, TRANSPORTS[0]).wait(io.waitScope);
    auto server = newShardServer(placement, 0, rounds, updater, io.unixEventPort).service;
    serving = listener->serve(io.provider->getTimer(), limitsFor(placement), server, testIdentity())
                  .eagerlyEvaluate(nullptr);
  }
  KJ_DISALLOW_COPY(SharingBench);

  template <typename Promise>
  kj::String refusal(Promise&& promise) {
    KJ_IF_MAYBE(e, kj::runCatchingExceptions([&]() { promise.wait(io.waitScope); })) {
      return kj::str(e->getDescription());
    }
    return kj::str();
  }
};

// A worker without SharedServers, which writes its notes itself.
struct RawWorker {
  SharingBench& bench;
  kj::Own<Peer> peer;
  ShardSession::Client session;
  kj::Own<SharedMemory> memory;
  Channel channel;
  kj::Maybe<RingWriter> pushes;
  kj::AutoCloseFd bell;

  RawWorker(SharingBench& bench, uint rank)
      : bench(bench),
        peer(kj::heap<Peer>(connect(bench.io.provider->getNetwork(), bench.listener->address(),
                                TRANSPORTS[0], testIdentity(), testIdentity().name)
                                .wait(bench.io.waitScope),
            limitsFor(bench.placement))),
        session(hello(rank)),
        memory(newWorkerMemory(bench.placement)),
        channel(bench.layout.channel(memory->bytes(), 0)),
        pushes(RingWriter(channel.pushes)) {}

  ShardSession::Client hello(uint rank) {
    auto request = peer->bootstrap().castAs<ShardService>().helloRequest();
    request.setRank(rank);
    request.setWorkers(bench.rounds.workers);
    request.setMode(kj::str(bench.rounds));
    request.setPlacement(bench.placement.digest());
    return request.send().wait(bench.io.waitScope).getSession();
  }

  capnp::RemotePromise<ShardSession::ShareResults> offer(int descriptor) {
    auto request = session.shareRequest();
    request.setMemory(passed(descriptor));
    return request.send();
  }

  // Shares its memory, and sets the initial values of all slices.
  void share() {
    for (SliceId id: kj::indices(bench.placement.slices)) {
      auto initialize = session.initializeRequest();
      auto values = Bench::filled(bench.placement.slices[id].size, 1);
      Bench::set(initialize.initValues(1)[0], id, values);
      initialize.send().wait(bench.io.waitScope);
    }
    auto shared = offer(memory->descriptor()).wait(bench.io.waitScope);
    auto fd = shared.getBell().getFd().wait(bench.io.waitScope);
    bell = duplicate(KJ_ASSERT_NONNULL(fd));
  }

  void put(Note note) { CHECK(KJ_ASSERT_NONNULL(pushes).put(note)); }
  void ring() {
    uint64_t one = 1;
    KJ_SYSCALL(::write(bell, &one, sizeof(one)));
  }
  // Returns the error that the server reports.
  kj::String complaint() { return bench.refusal(session.watchRequest().send()); }
};

TEST_CASE("RingSession: memory of the wrong size, or whose size may still change, is refused") {
  SharingBench bench;
  RawWorker worker(bench, 0);
  auto large = SharedMemory::create(bench.layout.bytes() + 4096, SharedMemory::WRITE);
  CHECK(contains(bench.refusal(worker.offer(large->descriptor())), "another size than agreed"));
  int raw;
  KJ_SYSCALL(raw = ::memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  kj::AutoCloseFd unsealed(raw);
  KJ_SYSCALL(::ftruncate(unsealed, bench.layout.bytes()));
  CHECK(contains(bench.refusal(worker.offer(unsealed)), "sealed against a change"));
  CHECK(contains(worker.complaint(), "without sharing memory"));
  // The session is still open, and accepts correct memory.
  worker.share();
  CHECK(contains(bench.refusal(worker.offer(worker.memory->descriptor())), "twice"));
}

TEST_CASE("RingSession: of two offers of memory that are open at the same time, one is refused") {
  SharingBench bench;
  RawWorker worker(bench, 0);
  auto late = kj::newPromiseAndFulfiller<Descriptor::Client>();
  auto request = worker.session.shareRequest();
  request.setMemory(kj::mv(late.promise));
  auto waiting = request.send();
  worker.share();
  late.fulfiller->fulfill(passed(worker.memory->descriptor()));
  CHECK(contains(bench.refusal(waiting), "twice"));
}

TEST_CASE("RingSession: a wrong note ends only its session, with the reason") {
  struct {
    Note note;
    kj::StringPtr reason;
  } rows[] = {
      {{7, 0, 0}, "no such slice"},
      {{0, 0, 1}, "not its next"},
  };
  for (auto& row: rows) {
    CAPTURE(row.reason);
    SharingBench bench;
    RawWorker bad(bench, 0);
    bad.share();
    bad.put(row.note);
    bad.ring();
    CHECK(contains(bad.complaint(), row.reason));
    // With calls, the other worker and a new session of the same rank make a round.
    RawWorker good(bench, 1), again(bench, 0);
    auto push = [&](RawWorker& worker) {
      auto request = worker.session.pushPullRequest();
      Bench::set(request.initGradients(1)[0], 0, Bench::filled(1000, 1));
      return request.send();
    };
    auto first = push(good);
    push(again).wait(bench.io.waitScope);
    CHECK(all(first.wait(bench.io.waitScope), 1000, 3));
  }
}

TEST_CASE("RingSession: a ring that claims more notes than it has room for ends its session") {
  SharingBench bench;
  RawWorker worker(bench, 0);
  worker.share();
  worker.channel.pushes.written.value = 1000;
  worker.ring();
  CHECK(contains(worker.complaint(), "more notes than it has room for"));
}

TEST_CASE("RingSession: a timer waits for only a few MiB of a ring full of pushes") {
  CountingUpdater updater;
  // 4 MiB, in 64 slices.
  SharingBench bench({1 << 20}, roundsOf("dist_async", 1), updater);
  CHECK(bench.placement.slices.size() == 64);
  RawWorker worker(bench, 0);
  worker.share();
  auto fired = updater.untilFired(bench.io.provider->getTimer());
  for (SliceId id: kj::indices(bench.placement.slices)) worker.put(Note{id, 0, 0});
  worker.ring();
  // Twice 1 MiB, because the event of the bell comes before the timer.
  CHECK(fired.wait(bench.io.waitScope) <= 32);
  // The server takes the remaining notes although nobody rings again.
  RingReader answers(worker.channel.answers);
  for (uint answered = 0; answered < 64;) {
    if (answers.take() != nullptr) {
      answered++;
    } else {
      bench.io.provider->getTimer().afterDelay(0 * kj::NANOSECONDS).wait(bench.io.waitScope);
    }
  }
}

TEST_CASE(
    "RingSession: a gradient counts although its worker went away before the round was full") {
  SharingBench bench;
  RawWorker other(bench, 1);
  {
    RawWorker worker(bench, 0);
    worker.share();
    for (auto& value: bench.layout.gradients(worker.memory->bytes())) value = 5;
    worker.put(Note{0, 0, 0});
    worker.ring();
    auto watching = worker.session.watchRequest().send();
    CHECK(!watching.poll(bench.io.waitScope));
  }
  auto request = other.session.pushPullRequest();
  Bench::set(request.initGradients(1)[0], 0, Bench::filled(1000, 1));
  CHECK(all(request.send().wait(bench.io.waitScope), 1000, 7));
}

}  // namespace
}  // namespace rpc
