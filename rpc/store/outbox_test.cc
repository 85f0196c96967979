#include "rpc/store/outbox.h"

#include <doctest/doctest.h>
#include <kj/debug.h>
#include <kj/string.h>

#include "rpc/testing/test_model.h"

namespace rpc {
namespace {

// Makes slices of these sizes (in floats), all on one server unless `shards` says otherwise.
Placement placementOf(
    std::initializer_list<uint64_t> sizes, std::initializer_list<uint> shards = {}) {
  kj::Vector<Slice> slices;
  kj::Vector<kj::Vector<SliceId>> dealt;
  dealt.resize(2);
  uint64_t offset = 0;
  for (auto size: sizes) {
    SliceId id = slices.size();
    uint shard = shards.size() == 0 ? 0 : shards.begin()[id];
    slices.add(Slice{id, offset, size, shard});
    dealt[shard].add(id);
    offset += size;
  }
  auto held = KJ_MAP(ids, dealt) {
    return ids.releaseAsArray();
  };
  return {slices.releaseAsArray(), kj::mv(held)};
}

// Returns a short text of a call: "push 3: 0 1 4".
kj::String textOf(const Outbox::Call& call) {
  const char* WORDS[] = {"initialize", "pull", "start", "push", "rest"};
  return kj::str(WORDS[call.what], ' ', call.number, ':', call.slices.size() > 0 ? " " : "",
      kj::strArray(call.slices, " "));
}

// An outbox whose sessions are all open, and its unanswered calls.
struct Sender {
  Outbox outbox;
  kj::Vector<Outbox::Call> sent;

  Sender(const Placement& placement, uint rank, uint servers = 1): outbox(placement, rank) {
    for (uint server = 0; server < servers; server++) outbox.opened(server);
  }

  // Returns the calls that may go now to `server`.
  kj::String next(uint server = 0) {
    kj::Vector<kj::String> texts;
    for (;;) {
      KJ_IF_MAYBE(call, outbox.next(server)) {
        texts.add(textOf(*call));
        sent.add(kj::mv(*call));
      } else {
        return kj::strArray(texts, ", ");
      }
    }
  }

  // Returns the calls that may go if the wire takes each of them at once.
  kj::String all(uint server = 0) {
    kj::Vector<kj::String> texts;
    for (;;) {
      outbox.taken(server);
      auto more = next(server);
      if (more == nullptr) return kj::strArray(texts, ", ");
      texts.add(kj::mv(more));
    }
  }

  void push(uint64_t step, SliceRange slices) { outbox.add({Order::PUSH, step, slices}); }

  // Answers the calls to `server`. Returns whether that completed an order.
  bool answer(uint server = 0) {
    bool ended = false;
    for (auto& call: sent) ended = outbox.answered(server, call);
    sent.clear();
    return ended;
  }
};

constexpr uint64_t FLOATS_MAX = CALL_BYTES_MAX / sizeof(float);
constexpr uint64_t QUARTER = FLOATS_MAX / 4;

TEST_CASE("Outbox: slices of a server share calls of up to 256 KiB, as equal as possible") {
  auto four = placementOf({QUARTER, QUARTER, QUARTER, QUARTER});
  Sender full(four, 0);
  full.push(0, {0, 4});
  CHECK(full.all() == "push 0: 0 1 2 3");
  auto even = placementOf({QUARTER, QUARTER, QUARTER, QUARTER, QUARTER});
  Sender sender(even, 0);
  sender.push(0, {0, 5});
  CHECK(sender.all() == "push 0: 0 1, push 0: 2 3 4");
  auto above = placementOf({QUARTER, QUARTER, QUARTER, QUARTER + 1});
  Sender other(above, 0);
  other.push(0, {0, 4});
  CHECK(other.all() == "push 0: 0 1, push 0: 2 3");
}

TEST_CASE("Outbox: a slice above 256 KiB travels alone") {
  auto placement = placementOf({1, FLOATS_MAX + 1, 1, 1, 3 * FLOATS_MAX});
  Sender sender(placement, 0);
  sender.push(0, {0, 5});
  CHECK(sender.all() == "push 0: 0, push 0: 1, push 0: 2 3, push 0: 4");
}

TEST_CASE("Outbox: a call has no more slices than a message has room for") {
  kj::Vector<uint64_t> sizes;
  sizes.resize(2 * CALL_SLICES_MAX + 1);
  for (auto& size: sizes) size = 1;
  auto placement = placeBalanced(makeKeys(sizes), 4096, 1);
  Sender sender(placement, 0);
  sender.push(0, {0, SliceId(sizes.size())});
  sender.next();
  REQUIRE(sender.sent.size() == 3);
  CHECK(sender.sent[0].slices.size() == CALL_SLICES_MAX);
  CHECK(sender.sent[1].slices.size() == CALL_SLICES_MAX);
  CHECK(sender.sent[2].slices.size() == 1);
}

TEST_CASE("Outbox: each server gets its own slices of the range, over all keys") {
  auto placement = placementOf({10, 20, 30, 40, 50, 60}, {1, 0, 1, 1, 0, 1});
  Sender sender(placement, 0, 2);
  sender.push(7, {1, 6});
  CHECK(sender.next(0) == "push 7: 1 4");
  CHECK(sender.next(1) == "push 7: 2 3 5");
}

TEST_CASE(
    "Outbox: slices that the window holds back are overtaken by those that the next forward needs "
    "first") {
  auto placement = placementOf({QUARTER, FLOATS_MAX, FLOATS_MAX, FLOATS_MAX, QUARTER});
  Sender sender(placement, 0);
  sender.push(0, {3, 5});
  CHECK(sender.next() == "push 0: 3");
  CHECK(sender.outbox.waiting_bytes(0) == CALL_BYTES_MAX / 4);
  sender.push(0, {2, 3});
  sender.push(0, {0, 2});
  CHECK(sender.next() == "");
  sender.outbox.taken(0);
  CHECK(sender.next() == "push 0: 0, push 0: 1");
  CHECK(sender.all() == "push 0: 2, push 0: 4");
  CHECK(sender.outbox.waiting_bytes(0) == 0);
  CHECK(sender.outbox.waitingMax_bytes(0) == 2 * CALL_BYTES_MAX + CALL_BYTES_MAX / 2);
}

TEST_CASE(
    "Outbox: slices that waited together share a call, also with gaps, and an older step goes "
    "first") {
  auto placement = placementOf({1, 1, 1, FLOATS_MAX, 1, 1});
  Sender sender(placement, 0);
  sender.push(4, {3, 4});
  CHECK(sender.next() == "push 4: 3");
  sender.push(4, {4, 6});
  sender.push(5, {1, 2});
  sender.push(4, {2, 3});
  sender.push(5, {0, 1});
  CHECK(sender.all() == "push 4: 2 4 5, push 5: 0 1");
}

TEST_CASE("Outbox: a smaller window makes smaller calls") {
  auto placement = placementOf({QUARTER, QUARTER, QUARTER, QUARTER});
  Sender sender(placement, 0);
  sender.outbox.taken(0, CALL_BYTES_MAX / 2);
  sender.push(0, {0, 4});
  CHECK(sender.next() == "push 0: 0 1");
  sender.outbox.taken(0, 1);
  CHECK(sender.next() == "push 0: 2");
}

TEST_CASE(
    "Outbox: a worker sends START to a server after it has received or sent the initial values") {
  auto placement = placementOf({FLOATS_MAX, FLOATS_MAX, 5}, {0, 0, 1});
  for (uint rank: {0, 1}) {
    CAPTURE(rank);
    auto word = rank == 0 ? "initialize"_kj : "pull"_kj;
    Sender sender(placement, rank, 2);
    sender.outbox.add({Order::INITIALIZE, 0, {}});
    CHECK(sender.all(0) == kj::str(word, " 0: 0, ", word, " 0: 1"));
    CHECK(!sender.answer(0));
    CHECK(sender.next(1) == kj::str(word, " 0: 2"));
    CHECK(!sender.answer(1));
    CHECK(sender.next(1) == "start 0:");
    CHECK(!sender.answer(1));
    CHECK(sender.all(0) == "start 0:");
    CHECK(sender.answer(0));
    CHECK(sender.all(0) == "");
  }
}

TEST_CASE(
    "Outbox: nothing goes before a session is open, and calls go again after a broken connection") {
  auto placement = placementOf({FLOATS_MAX, FLOATS_MAX, 1, 1});
  Outbox closed(placement, 0);
  closed.add({Order::PUSH, 0, {0, 4}});
  CHECK(closed.next(0) == nullptr);

  Sender sender(placement, 0);
  sender.push(0, {0, 1});
  sender.next();
  sender.answer();
  sender.outbox.taken(0);
  sender.push(0, {1, 3});
  sender.push(1, {0, 1});
  CHECK(sender.next() == "push 0: 1");
  auto waiting = sender.outbox.waiting_bytes(0);
  sender.outbox.lost(0);
  sender.sent.clear();
  CHECK(sender.next() == "");
  CHECK(sender.outbox.waiting_bytes(0) == waiting + CALL_BYTES_MAX);
  sender.outbox.opened(0);
  CHECK(sender.all() == "push 0: 1, push 0: 2, push 1: 0");
  sender.answer();
  CHECK(sender.all() == "");
}

TEST_CASE("Outbox: waitingMax_bytes counts only pushes, including those that go again") {
  auto placement = placementOf({QUARTER, QUARTER, QUARTER});
  Sender sender(placement, 0);
  sender.outbox.add({Order::INITIALIZE, 0, {}});
  CHECK(sender.next() == "initialize 0: 0 1 2");
  sender.outbox.lost(0);
  sender.sent.clear();
  sender.outbox.opened(0);
  CHECK(sender.next() == "initialize 0: 0 1 2");
  sender.answer();
  CHECK(sender.next() == "start 0:");
  sender.answer();
  sender.outbox.taken(0);
  CHECK(sender.outbox.waitingMax_bytes(0) == 0);
  sender.push(0, {1, 2});
  CHECK(sender.next() == "push 0: 1");
  CHECK(sender.outbox.waitingMax_bytes(0) == CALL_BYTES_MAX / 4);
  sender.push(0, {0, 1});
  CHECK(sender.outbox.waitingMax_bytes(0) == CALL_BYTES_MAX / 4);
  sender.outbox.lost(0);
  CHECK(sender.outbox.waitingMax_bytes(0) == CALL_BYTES_MAX / 2);
}

TEST_CASE("Outbox: rests are numbered, and a repeated rest keeps its number") {
  auto placement = placementOf({1, 1}, {0, 1});
  Sender sender(placement, 0, 2);
  for (uint rest = 0; rest < 3; rest++) {
    auto text = kj::str("rest ", rest, ':');
    sender.outbox.add({Order::REST, rest, {}});
    CHECK(sender.next(0) == text);
    sender.answer(0);
    CHECK(sender.next(1) == text);
    sender.outbox.lost(1);
    sender.outbox.opened(1);
    sender.sent.clear();
    CHECK(sender.next(1) == text);
    CHECK(sender.answer(1));
  }
}

TEST_CASE("Outbox: a slice is pushed again only after its last push was answered") {
  auto placement = placementOf({1});
  Sender sender(placement, 0);
  sender.push(0, {0, 1});
  CHECK_THROWS(sender.push(1, {0, 1}));
  sender.next();
  CHECK_THROWS(sender.outbox.add({Order::REFRESH, 0, {}}));
  sender.answer();
  sender.outbox.add({Order::REFRESH, 0, {}});
  CHECK(sender.next() == "pull 0: 0");
  CHECK(sender.answer());
}

}  // namespace
}  // namespace rpc
