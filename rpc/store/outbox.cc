#include "rpc/store/outbox.h"

#include <kj/debug.h>
#include <kj/vector.h>

#include <algorithm>

namespace rpc {

Outbox::Outbox(const Placement& placement, uint rank)
    : placement(placement),
      isFirst(rank == 0),
      lines(kj::heapArray<Line>(placement.shards.size())) {
  for (auto server: kj::indices(lines)) {
    lines[server].ids = placement.shards[server];
    lines[server].slices = kj::heapArray<OutgoingSlice>(placement.shards[server].size());
  }
}

uint64_t Outbox::bytesOf(const Line& line, size_t index) const {
  return placement.slices[line.ids[index]].size * sizeof(float);
}

void Outbox::add(const Order& order) {
  SliceRange everything{0, SliceId(placement.slices.size())};
  if (order.what != Order::PUSH) {
    KJ_REQUIRE(missing == 0, "an order came before the last one was completed", missing);
  }
  switch (order.what) {
    case Order::INITIALIZE:
      add(isFirst ? Call::INITIALIZE : Call::PULL, 0, everything);
      addLast(Call::START);
      break;
    case Order::RESUME:
      add(Call::PULL, 0, everything);
      addLast(Call::START);
      break;
    case Order::PUSH:
      add(Call::PUSH, order.number, order.slices);
      break;
    case Order::REST:
      addLast(Call::REST, order.number);
      break;
    case Order::REFRESH:
      add(Call::PULL, 0, everything);
      break;
  }
}

void Outbox::add(Call::What what, uint64_t step, SliceRange range) {
  for (auto& line: lines) {
    auto& ids = line.ids;
    size_t begin = std::lower_bound(ids.begin(), ids.end(), range.begin) - ids.begin();
    size_t end = std::lower_bound(ids.begin() + begin, ids.end(), range.end) - ids.begin();
    for (size_t i = begin; i < end; i++) {
      KJ_REQUIRE(line.slices[i].state == IDLE, "a slice's last call was not answered", ids[i]);
      line.slices[i] = {WAITING, what, step};
      line.waiting_bytes += bytesOf(line, i);
    }
    line.waiting += end - begin;
    if (begin < end) line.lowest = kj::min(line.lowest, begin);
    if (what == Call::PUSH) {
      line.waitingMax_bytes = kj::max(line.waitingMax_bytes, line.waiting_bytes);
    } else {
      missing += end - begin;
    }
  }
}

void Outbox::addLast(Call::What what, uint64_t number) {
  for (auto& line: lines) {
    KJ_ASSERT(line.last == IDLE);
    line.last = WAITING;
    line.lastWhat = what;
    line.lastNumber = number;
    ++missing;
  }
}

kj::Maybe<Outbox::Call> Outbox::next(uint server) {
  auto& line = lines[server];
  // A call that fills only the last quarter of the window would cost more than it saves.
  if (!line.open || line.given_bytes > line.window_bytes / 4 * 3) return nullptr;
  if (line.waiting > 0) return collect(line);
  if (line.last != WAITING || line.sent > 0) return nullptr;
  line.last = SENT;
  return Call{line.lastWhat, line.lastNumber, nullptr, 0};
}

// Returns the index of the waiting slice to send first: the lowest one of the oldest step.
size_t Outbox::mostUrgent(Line& line) const {
  auto& slices = line.slices;
  while (slices[line.lowest].state != WAITING) line.lowest++;
  size_t first = line.lowest;
  for (size_t i = first + 1; i < slices.size(); i++) {
    if (slices[i].state == WAITING && slices[i].step < slices[first].step) first = i;
  }
  return first;
}

Outbox::Call Outbox::collect(Line& line) {
  size_t i = mostUrgent(line);
  auto [state, what, step] = line.slices[i];
  uint64_t calls = (line.waiting_bytes + CALL_BYTES_MAX - 1) / CALL_BYTES_MAX;
  uint64_t equal_bytes = (line.waiting_bytes + calls - 1) / calls;
  uint64_t room_bytes = kj::min(line.window_bytes, equal_bytes);
  uint64_t bytes = 0;
  kj::Vector<SliceId> slices;
  for (; i < line.slices.size() && slices.size() < CALL_SLICES_MAX; i++) {
    auto& slice = line.slices[i];
    if (slice.state != WAITING || slice.what != what || slice.step != step) continue;
    // A slice that is larger than the room is sent alone.
    if (slices.size() > 0 && bytes + bytesOf(line, i) > room_bytes) break;
    bytes += bytesOf(line, i);
    slice.state = SENT;
    slices.add(line.ids[i]);
  }
  line.waiting -= slices.size();
  line.sent += slices.size();
  line.waiting_bytes -= bytes;
  uint64_t sent_bytes = what == Call::PULL ? 0 : bytes;
  line.given_bytes += sent_bytes;
  return Call{what, step, slices.releaseAsArray(), sent_bytes};
}

void Outbox::taken(uint server, uint64_t window_bytes) {
  lines[server].given_bytes = 0;
  lines[server].window_bytes = window_bytes;
}

bool Outbox::answered(uint server, const Call& call) {
  auto& line = lines[server];
  size_t i = 0;
  for (auto id: call.slices) {
    i = std::lower_bound(line.ids.begin() + i, line.ids.end(), id) - line.ids.begin();
    auto& slice = line.slices[i];
    KJ_ASSERT(slice.state == SENT && slice.what == call.what, "nobody asked for this answer", id);
    slice.state = IDLE;
  }
  line.sent -= call.slices.size();
  bool isLast = call.what == Call::START || call.what == Call::REST;
  if (isLast) {
    KJ_ASSERT(line.last == SENT);
    line.last = IDLE;
  }
  if (call.what == Call::PUSH) return false;
  missing -= call.slices.size() + (isLast ? 1 : 0);
  return missing == 0;
}

void Outbox::opened(uint server) {
  lines[server].open = true;
}

void Outbox::lost(uint server) {
  auto& line = lines[server];
  line.open = false;
  line.given_bytes = 0;
  line.lowest = 0;
  for (auto i: kj::indices(line.slices)) {
    if (line.slices[i].state != SENT) continue;
    line.slices[i].state = WAITING;
    line.waiting++;
    line.sent--;
    line.waiting_bytes += bytesOf(line, i);
    if (line.slices[i].what != Call::PUSH) continue;
    line.waitingMax_bytes = kj::max(line.waitingMax_bytes, line.waiting_bytes);
  }
  if (line.last == SENT) line.last = WAITING;
}

}  // namespace rpc
