#include "rpc/store/shared_servers.h"

#include <errno.h>
#include <kj/debug.h>
#include <unistd.h>

#include <cstring>

#include "rpc/wire/descriptor.h"

namespace rpc {

SharedServers::SharedServers(const Placement& placement, const Rounds& rounds, SharedMemory& memory)
    : placement(placement),
      rounds(rounds),
      memory(memory),
      layout(placement),
      own(layout.channel(memory.bytes(), 0).workerSleeps),
      servers(kj::heapArray<kj::Maybe<kj::Own<Server>>>(placement.shards.size())),
      lastPushes(kj::heapArray<LastPush>(placement.slices.size())) {}

kj::Promise<bool> SharedServers::share(uint shard, ShardSession::Client session) {
  auto request = session.shareRequest();
  request.setMemory(passed(memory.descriptor()));
  return request.send().then(
      [this, shard](capnp::Response<ShardSession::ShareResults>&& response) -> kj::Promise<bool> {
        if (!response.hasMemory() || !response.hasBell()) return false;
        auto memory = response.getMemory(), bell = response.getBell();
        auto memoryFd = memory.getFd(), bellFd = bell.getFd();
        return memoryFd.then([this, shard, memory = kj::mv(memory), bell = kj::mv(bell),
                                 bellFd = kj::mv(bellFd)](kj::Maybe<int> values) mutable {
          return bellFd.then([this, shard, values, memory = kj::mv(memory), bell = kj::mv(bell)](
                                 kj::Maybe<int> bellFd) mutable {
            // The system drops descriptors that exceed the process's limit.
            open(shard, KJ_REQUIRE_NONNULL(values, "no memory of a server", strerror(EMFILE)),
                KJ_REQUIRE_NONNULL(bellFd, "no bell of a server", strerror(EMFILE)));
            return true;
          });
        });
      });
}

void SharedServers::traceTo(TraceLane& lane, uint rank) {
  trace = lane;
  tracedRank = rank;
}

void SharedServers::record(TracePoint station, uint64_t step, SliceId id) {
  KJ_IF_MAYBE(lane, trace) lane->add(station, tracedRank, step, id);
}

void SharedServers::open(uint shard, int values, int bell) {
  ServerLayout serverLayout(placement, shard, rounds);
  auto channel = layout.channel(memory.bytes(), shard);
  servers[shard] = kj::heap<Server>(Server{
      .memory = SharedMemory::map(values, serverLayout.bytes(), SharedMemory::READ),
      .bell = duplicate(bell),
      .layout = kj::mv(serverLayout),
      .pushes = RingWriter(channel.pushes),
      .answers = RingReader(channel.answers),
      .sleeper = Sleeper(channel.serverSleeps),
  });
}

void SharedServers::push(SliceId id, uint64_t step) {
  auto& server = *KJ_ASSERT_NONNULL(servers[placement.slices[id].shard]);
  auto& last = lastPushes[id];
  KJ_REQUIRE(last.answered == last.pushed,
      "a slice was pushed again before its answer was waited for", id, step);
  last.pushed = step + 1;
  last.begun = clock.now();
  record(TracePoint::SENT, step, id);
  KJ_ASSERT(server.pushes.put(Note{id, 0, step}), "a ring has a note for each slice");
  server.hasNewPushes = true;
}

void SharedServers::wakeServers() {
  for (auto& each: servers) {
    KJ_IF_MAYBE(found, each) {
      auto& server = **found;
      if (!server.hasNewPushes) continue;
      server.hasNewPushes = false;
      if (!server.sleeper.rouse()) continue;
      uint64_t one = 1;
      ssize_t n = ::write(server.bell, &one, sizeof(one));
      // EAGAIN means that the counter is full. Then the server wakes anyway.
      KJ_ASSERT(n == sizeof(one) || errno == EAGAIN, errno);
    }
  }
}

bool SharedServers::await(SliceRange slices, uint64_t step, kj::ArrayPtr<float> parameters,
    kj::FunctionParam<void()> check) {
  bool copied = false;
  auto next = slices.begin;
  for (;;) {
    takeAll();
    bool isMissing = false;
    for (SliceId id = next; id < slices.end; id++) {
      if (!has(placement.slices[id].shard)) continue;
      auto& last = lastPushes[id];
      if (last.copied < last.answered) {
        copy(id, parameters);
        copied = true;
      }
      if (last.copied >= step) continue;
      // All slices before the first missing one have been copied.
      if (!isMissing) next = id;
      isMissing = true;
    }
    if (!isMissing) return copied;
    own.lieDown();
    KJ_DEFER(own.getUp());
    if (takeAll()) continue;
    check();
    own.wait();
  }
}

// Takes the answers that have arrived. Returns whether there were any.
bool SharedServers::takeAll() {
  bool any = false;
  for (uint shard: kj::indices(servers)) {
    KJ_IF_MAYBE(found, servers[shard]) {
      auto& server = **found;
      for (;;) {
        KJ_IF_MAYBE(note, server.answers.take()) {
          take(shard, server, *note);
          any = true;
        } else {
          break;
        }
      }
    }
  }
  return any;
}

void SharedServers::take(uint shard, Server& server, const Note& note) {
  SliceId id = note.slice;
  KJ_REQUIRE(id < lastPushes.size() && placement.slices[id].shard == shard,
      "a server answered for a slice that is not its own", shard, id);
  auto& last = lastPushes[id];
  KJ_REQUIRE(last.answered < last.pushed, "a server answered what was not pushed", shard, id);
  KJ_REQUIRE(note.number >= (rounds.countsEveryPush() ? last.pushed : 0),
      "the answer to a push has values from before the push", shard, id, note.number, last.pushed);
  KJ_REQUIRE(note.buffer < server.layout.count(), "a server named a buffer that it does not have",
      shard, note.buffer);
  last.answered = last.pushed;
  last.answer = note;
  auto roundTrip = clock.now() - last.begun;
  server.traffic.calls++;
  server.traffic.roundTrips += roundTrip;
  server.traffic.roundTripMax = kj::max(server.traffic.roundTripMax, roundTrip);
}

void SharedServers::copy(SliceId id, kj::ArrayPtr<float> parameters) {
  auto& slice = placement.slices[id];
  auto& server = *KJ_ASSERT_NONNULL(servers[slice.shard]);
  auto& last = lastPushes[id];
  auto values = server.layout.values(server.memory->bytes(), id, last.answer.buffer);
  rpc::copy(values, slice.of(parameters));
  last.copied = last.answered;
  record(TracePoint::RETURNED, last.copied - 1, id);
  server.traffic.pushed_bytes += values.asBytes().size();
  server.traffic.pulled_bytes += values.asBytes().size();
  if (id == 0) newest = last.answer.number;
}

void SharedServers::addTraffic(kj::ArrayPtr<RemoteStore::Traffic> traffic) {
  for (uint shard: kj::indices(servers)) {
    KJ_IF_MAYBE(server, servers[shard]) {
      auto& passed = (*server)->traffic;
      auto& sum = traffic[shard];
      sum.calls += passed.calls;
      sum.pushed_bytes += passed.pushed_bytes;
      sum.pulled_bytes += passed.pulled_bytes;
      sum.roundTrips += passed.roundTrips;
      sum.roundTripMax = kj::max(sum.roundTripMax, passed.roundTripMax);
      passed = {};
    }
  }
}

}  // namespace rpc
