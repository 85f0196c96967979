// Tests how long workers wait, with outboxes and shards over a simulated network.
#include <doctest/doctest.h>
#include <kj/debug.h>

#include <deque>
#include <set>

#include "rpc/shard/shard.h"
#include "rpc/store/outbox.h"
#include "rpc/testing/test_model.h"
#include "rpc/testing/test_network.h"

namespace rpc {
namespace {

// The workers' computations, and the network between them and the servers.
struct Setting {
  kj::StringPtr mode = "dist_sync";
  uint workers = 1;
  uint servers = 1;
  uint steps = 3;
  kj::Array<uint64_t> segments;  // the floats of each one, which is a key
  uint64_t slice_bytes = 4096;
  double forward_s = 0.001;  // of each segment
  double backward_s = 0.002;
  double bytes_per_s = 1e6;
  double latency_s = 1e-4;
  uint64_t window_bytes = 8192;    // of the outbox
  uint64_t kernel_bytes = 8192;    // unsent bytes up to which it takes more
  kj::Maybe<uint> cuts = nullptr;  // seed
};

// The bytes of a call besides its payload. They are as much smaller than real ones as the calls
// are.
constexpr uint64_t ENVELOPE_BYTES = 16;

// A job in which each worker and each server has a separate host.
class Simulation {
public:
  explicit Simulation(const Setting& setting);

  // Returns how long the job took, in seconds, if nothing failed.
  double run();

private:
  struct Worker {
    Outbox outbox;
    HalfLink up, down;
    kj::Array<uint64_t> pushed;  // each slice's steps
    kj::Array<uint64_t> answered;
    // Per server: the slices that were pushed and not sent, by step and slice.
    std::deque<std::set<std::pair<uint64_t, SliceId>>> unsent;
    std::deque<uint> connections;  // to each server: how many there have been
    uint64_t step = 0;
    size_t segment = 0;
    bool waits = false;  // for the segment's parameters
    double ended_s = 0;

    Worker(Simulation& all, uint rank);
  };
  struct Waiter {
    uint rank;
    uint connection;
    kj::Array<uint64_t> due;  // of each slice
    Outbox::Call call;
  };
  struct Server {
    Shard shard;
    HalfLink up, down;
    kj::Vector<Waiter> waiters;

    Server(Simulation& all, uint shard);
  };

  SliceRange slicesOf(size_t segment) const;
  void forward(uint rank);
  void backward(uint rank);
  void send(uint rank, uint server);
  void checkOrder(uint rank, uint server, const Outbox::Call& call);
  void received(uint server, uint rank, uint connection, Outbox::Call call);
  void answerDue(uint server);
  void answered(uint rank, uint server, const Outbox::Call& call);
  void maybeCut(uint rank, uint server);

  const Setting& setting;
  Placement placement;
  const Rounds rounds;
  TestUpdater updater{1};
  kj::Array<float> floats;  // gradients, whose values do not matter
  VirtualClock clock;
  std::deque<Worker> workers;
  std::deque<Server> servers;
  uint64_t cutsDrawn = 0;
};

Simulation::Worker::Worker(Simulation& all, uint rank)
    : outbox(all.placement, rank),
      up(all.clock, all.setting.bytes_per_s, all.setting.servers,
          [&all, rank](uint server) {
            auto& worker = all.workers[rank];
            if (worker.up.waiting_bytes(server) > all.setting.kernel_bytes) return;
            worker.outbox.taken(server, all.setting.window_bytes);
            all.send(rank, server);
          }),
      down(all.clock, all.setting.bytes_per_s, 1),
      pushed(kj::heapArray<uint64_t>(all.placement.slices.size())),
      answered(kj::heapArray<uint64_t>(all.placement.slices.size())),
      unsent(all.setting.servers),
      connections(all.setting.servers) {
  for (auto& count: pushed) count = 0;
  for (auto& count: answered) count = 0;
}

Simulation::Server::Server(Simulation& all, uint index)
    : shard(all.placement, index, all.rounds, all.updater),
      up(all.clock, all.setting.bytes_per_s, all.setting.workers),
      down(all.clock, all.setting.bytes_per_s, 1) {
  for (auto id: all.placement.shards[index]) {
    shard.initialize(id, all.placement.slices[id].of(all.floats.asPtr().asConst()));
  }
}

Simulation::Simulation(const Setting& setting)
    : setting(setting),
      placement(placeBalanced(makeKeys(setting.segments), setting.slice_bytes, setting.servers)),
      rounds(roundsOf(setting.mode, setting.workers)),
      floats(kj::heapArray<float>(placement.parameters())) {
  for (auto& value: floats) value = 0;
  for (uint rank = 0; rank < setting.workers; rank++) {
    workers.emplace_back(*this, rank);
    for (uint server = 0; server < setting.servers; server++) {
      workers[rank].outbox.taken(server, setting.window_bytes);
      workers[rank].outbox.opened(server);
    }
  }
  for (uint server = 0; server < setting.servers; server++) servers.emplace_back(*this, server);
}

SliceRange Simulation::slicesOf(size_t segment) const {
  uint64_t begin = 0;
  for (size_t i = 0; i < segment; i++) begin += setting.segments[i];
  return placement.slicesOf(begin, begin + setting.segments[segment]);
}

double Simulation::run() {
  for (auto rank: kj::indices(workers)) forward(rank);
  clock.run();
  double end_s = 0;
  uint64_t pushes = setting.steps * setting.workers;
  for (auto index: kj::indices(servers)) {
    CHECK(servers[index].waiters.size() == 0);
    auto counted = servers[index].shard.counts().pushed;
    CHECK(counted == pushes * placement.shards[index].size());
  }
  for (auto& worker: workers) {
    REQUIRE(worker.step == setting.steps);
    for (uint server = 0; server < setting.servers; server++) {
      CHECK(worker.unsent[server].empty());
      CHECK(worker.outbox.waiting_bytes(server) == 0);
    }
    end_s = kj::max(end_s, worker.ended_s);
  }
  return end_s;
}

// Computes the segment if its parameters have arrived. Otherwise their answer calls this again.
void Simulation::forward(uint rank) {
  auto& worker = workers[rank];
  auto slices = slicesOf(worker.segment);
  for (SliceId id = slices.begin; id < slices.end; id++) {
    worker.waits = worker.answered[id] < worker.step;
    if (worker.waits) return;
  }
  bool last = worker.segment + 1 == setting.segments.size();
  // After the last step, only to wait for every answer.
  if (worker.step == setting.steps) {
    worker.ended_s = clock.now();
    if (last) return;
    worker.segment++;
    return forward(rank);
  }
  clock.after(setting.forward_s, [this, rank, last]() {
    if (last) return backward(rank);
    workers[rank].segment++;
    forward(rank);
  });
}

void Simulation::backward(uint rank) {
  clock.after(setting.backward_s, [this, rank]() {
    auto& worker = workers[rank];
    auto slices = slicesOf(worker.segment);
    for (SliceId id = slices.begin; id < slices.end; id++) {
      worker.pushed[id]++;
      worker.unsent[placement.slices[id].shard].emplace(worker.step, id);
    }
    worker.outbox.add({Order::PUSH, worker.step, slices});
    for (uint server = 0; server < setting.servers; server++) send(rank, server);
    if (worker.segment-- > 0) return backward(rank);
    worker.segment = 0;
    worker.step++;
    forward(rank);
  });
}

void Simulation::send(uint rank, uint server) {
  auto& worker = workers[rank];
  for (;;) {
    KJ_IF_MAYBE(next, worker.outbox.next(server)) {
      checkOrder(rank, server, *next);
      uint64_t bytes = next->sent_bytes + ENVELOPE_BYTES;
      sendMessage(clock, setting.latency_s, worker.up, server, servers[server].down, bytes,
          [this, rank, server, connection = worker.connections[server],
              call = kj::mv(*next)]() mutable {
            received(server, rank, connection, kj::mv(call));
          });
    } else {
      return;
    }
  }
}

// Checks that the call has the waiting slices that the next forward pass needs first.
void Simulation::checkOrder(uint rank, uint server, const Outbox::Call& call) {
  auto& unsent = workers[rank].unsent[server];
  REQUIRE(call.slices.size() > 0);
  for (auto id: call.slices) {
    REQUIRE(!unsent.empty());
    CHECK(*unsent.begin() == std::pair(call.number, id));
    unsent.erase({call.number, id});
  }
}

void Simulation::received(uint server, uint rank, uint connection, Outbox::Call call) {
  if (connection != workers[rank].connections[server]) return;
  auto& shard = servers[server].shard;
  auto due = KJ_MAP(id, call.slices) {
    auto gradient = placement.slices[id].of(floats.asPtr().asConst());
    return shard.push(rank, id, call.number, gradient);
  };
  servers[server].waiters.add(Waiter{rank, connection, kj::mv(due), kj::mv(call)});
  answerDue(server);
  maybeCut(rank, server);
}

void Simulation::answerDue(uint server) {
  auto& waiters = servers[server].waiters;
  auto& shard = servers[server].shard;
  size_t kept = 0;
  for (auto& waiter: waiters) {
    bool ready = true;
    for (auto i: kj::indices(waiter.due)) {
      ready = ready && shard.progress(waiter.call.slices[i]) >= waiter.due[i];
    }
    bool gone = waiter.connection != workers[waiter.rank].connections[server];
    if (!ready && !gone) {
      auto stays = kj::mv(waiter);
      waiters[kept++] = kj::mv(stays);
    } else if (!gone) {
      for (auto id: waiter.call.slices) shard.lend(waiter.rank, id);
      uint64_t bytes = waiter.call.sent_bytes + ENVELOPE_BYTES;
      auto& worker = workers[waiter.rank];
      sendMessage(clock, setting.latency_s, servers[server].up, waiter.rank, worker.down, bytes,
          [this, rank = waiter.rank, server, connection = waiter.connection,
              call = kj::mv(waiter.call)]() {
            if (connection == workers[rank].connections[server]) answered(rank, server, call);
          });
    }
  }
  waiters.truncate(kept);
}

void Simulation::answered(uint rank, uint server, const Outbox::Call& call) {
  auto& worker = workers[rank];
  worker.outbox.answered(server, call);
  for (auto id: call.slices) worker.answered[id] = call.number + 1;
  send(rank, server);
  if (worker.waits) forward(rank);
  maybeCut(rank, server);
}

// From time to time breaks a connection, and reconnects a little later.
void Simulation::maybeCut(uint rank, uint server) {
  KJ_IF_MAYBE(seed, setting.cuts) {
    if (noise(*seed, 1, ++cutsDrawn) < 0.9) return;
    auto& worker = workers[rank];
    worker.connections[server]++;
    worker.outbox.lost(server);
    // All calls that this server has not answered wait again.
    for (SliceId id: placement.shards[server]) {
      if (worker.pushed[id] > worker.answered[id]) {
        worker.unsent[server].emplace(worker.answered[id], id);
      }
    }
    clock.after(setting.latency_s, [this, rank, server]() {
      workers[rank].outbox.opened(server);
      send(rank, server);
    });
  }
}

kj::Array<uint64_t> equalSegments(uint count, uint64_t floats) {
  auto sizes = kj::heapArray<uint64_t>(count);
  for (auto& size: sizes) size = floats;
  return sizes;
}

TEST_CASE("Outbox: in any network each push is answered once, and the most urgent goes first") {
  for (uint seed = 0; seed < 2000; seed++) {
    CAPTURE(seed);
    uint drawn = 0;
    // Returns a number from 0 to `count` - 1.
    auto draw = [&](uint count) { return uint((noise(seed, 0, ++drawn) + 1) / 2 * count); };
    Setting setting;
    setting.mode = draw(2) == 0 ? "dist_sync"_kj : "dist_async"_kj;
    setting.workers = 1 + draw(3);
    setting.servers = 1 + draw(3);
    setting.segments = equalSegments(1 + draw(5), 0);
    for (auto& size: setting.segments) size = 1 + draw(draw(2) == 0 ? 20 : 6000);
    setting.forward_s = 1e-4 * draw(50);
    setting.backward_s = 1e-4 * draw(50);
    setting.bytes_per_s = 1e5 * (1 + draw(100));
    setting.latency_s = 1e-4 * draw(20);
    setting.window_bytes = 1 + draw(20000);
    setting.kernel_bytes = draw(20000);
    if (draw(2) == 0) setting.cuts = seed;
    Simulation(setting).run();
  }
}

// A model of 1 MiB, links of 1 MiB/s, and as many servers as workers. In each step the model goes
// both ways at the same time, which takes a second. A call carries a 64th of what a worker has for
// a server, because its slices count only when all of the call has arrived.
Setting slowNetwork() {
  Setting setting;
  setting.workers = 4;
  setting.servers = 4;
  setting.segments = equalSegments(64, 4096);
  setting.bytes_per_s = 1 << 20;
  setting.window_bytes = 4096;
  return setting;
}

// Returns how long a step takes after the first ones.
double step_s(Setting& setting) {
  setting.steps = 2;
  double begin_s = Simulation(setting).run();
  setting.steps = 12;
  return (Simulation(setting).run() - begin_s) / 10;
}

TEST_CASE(
    "Outbox: on a slow network a step takes as long as the network, and compute adds nothing") {
  auto setting = slowNetwork();
  for (double compute_s: {0.1, 0.3, 0.6, 0.9}) {
    CAPTURE(compute_s);
    setting.forward_s = compute_s / 3 / 64;
    setting.backward_s = compute_s * 2 / 3 / 64;
    double took_s = step_s(setting);
    CHECK(took_s > 1);
    CHECK(took_s < 1.08);
  }
}

TEST_CASE("Outbox: steps are faster with urgent slices first than in the order of backward") {
  auto setting = slowNetwork();
  setting.forward_s = 0.5 / 64;
  setting.backward_s = 0.1 / 64;
  double took_s = step_s(setting);
  // The kernel takes all pushes at once.
  setting.kernel_bytes = kj::maxValue;
  setting.window_bytes = 1 << 20;
  double inOrder_s = step_s(setting);
  CHECK(took_s < 0.75 * inOrder_s);
}

}  // namespace
}  // namespace rpc
