#include "rpc/shared_memory/shared_layout.h"

#include <kj/debug.h>

namespace rpc {

namespace {

// The page size of all machines that the program is built for.
constexpr uint64_t PAGE_BYTES = 4096;
constexpr uint64_t LINE_BYTES = sizeof(NoteCount);

constexpr uint64_t roundedUp(uint64_t bytes, uint64_t unit) {
  return (bytes + unit - 1) / unit * unit;
}

uint powerOfTwoFrom(uint64_t least) {
  uint64_t power = 1;
  while (power < least) power *= 2;
  return power;
}

// The counts of a channel. Its notes follow them.
struct Counts {
  NoteCount pushesWritten, pushesTaken, answersWritten, answersTaken, serverSleeps;
};

uint64_t channelBytes(uint capacity) {
  return sizeof(Counts) + 2 * uint64_t(capacity) * sizeof(Note);
}

}  // namespace

WorkerLayout::WorkerLayout(const Placement& placement)
    : capacities(KJ_MAP(slices, placement.shards) { return powerOfTwoFrom(slices.size()); }),
      gradients_bytes(placement.parameters() * sizeof(float)) {
  uint64_t end = PAGE_BYTES;
  channelsAt = KJ_MAP(capacity, capacities) {
    uint64_t begin = end;
    end = roundedUp(begin + channelBytes(capacity), PAGE_BYTES);
    return begin;
  };
  gradientsAt = end;
}

Channel WorkerLayout::channel(kj::ArrayPtr<kj::byte> memory, uint shard) const {
  KJ_REQUIRE(memory.size() == bytes());
  auto place = memory.begin() + channelsAt[shard];
  auto& counts = *reinterpret_cast<Counts*>(place);
  auto notes = reinterpret_cast<Note*>(place + sizeof(Counts));
  uint capacity = capacities[shard];
  return {
      {counts.pushesWritten, counts.pushesTaken, kj::arrayPtr(notes, capacity)},
      {counts.answersWritten, counts.answersTaken, kj::arrayPtr(notes + capacity, capacity)},
      counts.serverSleeps,
      *reinterpret_cast<NoteCount*>(memory.begin()),
  };
}

kj::ArrayPtr<float> WorkerLayout::gradients(kj::ArrayPtr<kj::byte> memory) const {
  KJ_REQUIRE(memory.size() == bytes());
  auto begin = reinterpret_cast<float*>(memory.begin() + gradientsAt);
  return kj::arrayPtr(begin, gradients_bytes / sizeof(float));
}

kj::Own<SharedMemory> newWorkerMemory(const Placement& placement) {
  return SharedMemory::create(WorkerLayout(placement).bytes(), SharedMemory::WRITE);
}

ServerLayout::ServerLayout(const Placement& placement, uint shard, const Rounds& rounds)
    : placement(placement),
      // As many as Shard needs. If a round waits for all workers: two. Otherwise: one per worker,
      // because each may borrow a different one, and two more.
      buffers(rounds.counted == Rounds::ALL ? 2 : rounds.workers + 2),
      offsets(kj::heapArray<uint64_t>(placement.slices.size())) {
  for (auto& offset: offsets) offset = kj::maxValue;
  uint64_t end = 0;
  for (auto id: placement.shards[shard]) {
    offsets[id] = end;
    end += roundedUp(placement.slices[id].size * sizeof(float), LINE_BYTES);
  }
  stride_bytes = roundedUp(kj::max(end, 1u), PAGE_BYTES);
}

kj::ArrayPtr<float> ServerLayout::values(
    kj::ArrayPtr<kj::byte> memory, SliceId id, uint buffer) const {
  KJ_REQUIRE(memory.size() == bytes());
  KJ_REQUIRE(id < offsets.size() && offsets[id] != kj::maxValue && buffer < buffers,
      "there are no such values", id, buffer, buffers);
  auto begin = reinterpret_cast<float*>(memory.begin() + buffer * stride_bytes + offsets[id]);
  return kj::arrayPtr(begin, placement.slices[id].size);
}

}  // namespace rpc
