// Memory that a worker and a server share, with any content written by the other end. Even first
// bytes: a server with a bad worker; odd ones: a worker with a bad server.
#include <kj/async-io.h>
#include <kj/vector.h>

#include "rpc/shard/ring_session.h"
#include "rpc/store/shared_servers.h"
#include "rpc/testing/test_model.h"
#include "rpc/wire/descriptor.h"
#include "tests/fuzz/fuzz.h"

namespace fuzz {
namespace {

constexpr uint WORKERS = 2;

kj::AsyncIoContext& context() {
  static auto io = kj::setupAsyncIo();
  return io;
}

const rpc::Placement& placement() {
  static const auto PLACEMENT = rpc::placeBalanced(rpc::makeKeys({20, 3, 1}), 32, 1);
  return PLACEMENT;
}

constexpr kj::StringPtr MODES[] = {
    "dist_sync"_kj, "dist_ssp"_kj, "easgd"_kj, "dist_async"_kj, "dc_asgd"_kj};

// The rounds of a mode, read once.
const rpc::Rounds& roundsOf(uint8_t choice) {
  static const auto ALL = KJ_MAP(name, MODES) {
    return rpc::roundsOf(name, WORKERS);
  };
  return ALL[choice % ALL.size()];
}

// Writes notes and counts like a broken or malicious worker.
void scribble(
    rpc::RingMemory ring, rpc::RingWriter& writer, kj::ArrayPtr<kj::byte> memory, Dice& dice) {
  uint8_t choice = dice.byte() % 4;
  if (choice < 2) {
    rpc::Note note{
        uint32_t(dice.near(placement().slices.size())), uint32_t(dice.near(4)), dice.near(4)};
    writer.put(note);
  } else if (choice == 2) {
    ring.written.value.store(dice.number(4));
  } else {
    size_t place = dice.number(2);
    for (auto byte: dice.take(8)) {
      if (place < memory.size()) memory[place++] = byte;
    }
  }
}

void serveWorkers(Dice& dice) {
  auto& io = context();
  auto& rounds = roundsOf(dice.byte());
  rpc::TestUpdater updater(1);
  rpc::Shard shard(placement(), 0, rounds, updater);
  for (auto& slice: placement().slices) {
    auto values = kj::heapArray<float>(slice.size);
    for (auto& value: values) value = 0;
    shard.initialize(&slice - placement().slices.begin(), values);
  }
  rpc::Waiting waiting(placement().slices.size());
  rpc::WorkerLayout layout(placement());
  struct Worker {
    kj::Own<rpc::SharedMemory> memory;
    rpc::Channel channel;
    rpc::RingWriter pushes;
    kj::Own<rpc::RingSession> session;
    kj::Promise<void> serving;
  };
  kj::Vector<kj::Own<Worker>> workers;
  rpc::RingService service{placement(), 0, shard, waiting, io.unixEventPort, nullptr};
  for (uint rank = 0; rank < WORKERS; rank++) {
    auto memory = rpc::newWorkerMemory(placement());
    auto other =
        rpc::SharedMemory::map(memory->descriptor(), layout.bytes(), rpc::SharedMemory::WRITE);
    auto session =
        kj::refcounted<rpc::RingSession>(service, rank, kj::mv(other), []() { return true; });
    auto serving = session->serve().eagerlyEvaluate([](kj::Exception&& e) { judge(e); });
    auto channel = layout.channel(memory->bytes(), 0);
    workers.add(kj::heap(Worker{kj::mv(memory), channel, rpc::RingWriter(channel.pushes),
        kj::mv(session), kj::mv(serving)}));
  }
  while (!dice.isEmpty()) {
    auto& worker = *workers[dice.byte() % WORKERS];
    for (uint8_t left = dice.byte() % 8; left > 0; left--) {
      scribble(worker.channel.pushes, worker.pushes, worker.memory->bytes(), dice);
    }
    uint64_t one = 1;
    KJ_SYSCALL(::write(worker.session->bell(), &one, sizeof(one)));
    io.waitScope.poll();
  }
}

// A server that shares its memory, and answers arbitrarily.
class BadServer final: public rpc::ShardSession::Server {
public:
  BadServer(int memory, int bell): memory(memory), bell(bell) {}

  kj::Promise<void> share(ShareContext context) override {
    context.getResults().setMemory(rpc::passed(memory));
    context.getResults().setBell(rpc::passed(bell));
    return kj::READY_NOW;
  }

private:
  int memory;
  int bell;
};

void callServer(Dice& dice) {
  auto& io = context();
  auto& rounds = roundsOf(dice.byte());
  auto memory = rpc::newWorkerMemory(placement());
  rpc::ServerLayout values(placement(), 0, rounds);
  auto buffers = rpc::SharedMemory::create(values.bytes(), rpc::SharedMemory::READ);
  rpc::SharedServers servers(placement(), rounds, *memory);
  // The bell is ignored.
  servers.share(0, kj::heap<BadServer>(buffers->descriptor(), buffers->descriptor()))
      .wait(io.waitScope);
  rpc::WorkerLayout layout(placement());
  auto channel = layout.channel(memory->bytes(), 0);
  auto ring = channel.answers;
  rpc::RingWriter answers(ring);
  auto parameters = kj::heapArray<float>(24);
  rpc::SliceRange all{0, uint32_t(placement().slices.size())};
  for (uint64_t step = 0; !dice.isEmpty(); step++) {
    for (rpc::SliceId id = all.begin; id < all.end; id++) servers.push(id, step);
    channel.pushes.taken.value.store(channel.pushes.written.value.load());
    for (uint8_t left = dice.byte() % 16; left > 0; left--) {
      scribble(ring, answers, memory->bytes(), dice);
    }
    servers.await(all, step + 1, parameters, []() { KJ_FAIL_REQUIRE("the server says no more"); });
  }
}

}  // namespace

void feed(Bytes input) {
  Dice dice(input);
  if (dice.byte() % 2 == 0) {
    serveWorkers(dice);
  } else {
    callServer(dice);
  }
}

}  // namespace fuzz
