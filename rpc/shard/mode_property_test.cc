#include <doctest/doctest.h>
#include <kj/debug.h>
#include <kj/exception.h>

#include <cstdlib>
#include <cstring>
#include <limits>

#include "rpc/shard/shard.h"
#include "rpc/testing/test_schedule.h"

namespace rpc {
namespace {

// How many schedules to run per way of counting.
uint64_t schedulesOfEach() {
  auto all = std::getenv("SCHEDULES");
  uint64_t count = all == nullptr ? 2000 : kj::StringPtr(all).parseAs<uint64_t>();
  return (count + WAYS - 1) / WAYS;
}

void spoil(kj::ArrayPtr<float> values) {
  for (auto& value: values) value = std::numeric_limits<float>::quiet_NaN();
}

// Shards that the test calls directly, in the same way as a server.
class DirectServers final: public Servers {
public:
  explicit DirectServers(const Setting& setting): setting(setting), updater(setting.newUpdater()) {
    auto& placement = setting.placement;
    for (auto index: kj::indices(placement.shards)) {
      shards.add(kj::heap<Shard>(placement, index, setting.rounds, *updater));
      for (auto id: placement.shards[index]) {
        shards.back()->initialize(id, placement.slices[id].of(setting.initial.asPtr().asConst()));
      }
    }
    for (uint i = 0; i < setting.rounds.workers * placement.slices.size(); i++) loans.add();
  }

  void deliver(Call& call, kj::ArrayPtr<const bool> counts) override {
    while (dues.size() <= call.index) dues.add();
    receive(call, counts);
  }

  bool deliverLate(Call& call, kj::ArrayPtr<const bool> counts) override {
    if (call.what == Call::PULL) return false;
    while (dues.size() <= call.index) dues.add();
    receive(call, counts);
    return true;
  }

  void reconnect(uint) override {}

  bool isAnswered(const Call& call) override {
    if (call.what != Call::PUSH) return true;
    auto& shard = *shards[call.shard];
    for (auto i: kj::indices(call.slices)) {
      if (shard.progress(call.slices[i]) < dues[call.index][i]) return false;
    }
    return true;
  }

  Answered take(Call& call, uint entry) override {
    // A gradient that was answered is not read again.
    if (call.what == Call::PUSH) spoil(call.gradients[entry]);
    SliceId id = call.slices[entry];
    auto lent = shards[call.shard]->lend(call.rank, id);
    loanOf(call.rank, id) = Loan{lent.values, kj::heapArray(lent.values)};
    return {lent.version, lent.values};
  }

  void compare(kj::ArrayPtr<const kj::Own<SliceModel>> models) override {
    for (auto& loan: loans) {
      if (loan.copy == nullptr) continue;  // nothing was lent yet
      KJ_REQUIRE(memcmp(loan.values.begin(), loan.copy.begin(), loan.copy.asBytes().size()) == 0,
          "lent values have changed");
    }
    for (auto index: kj::indices(shards)) {
      auto& shard = *shards[index];
      auto& counts = shard.counts();
      uint64_t pushed = 0, dropped = 0;
      for (auto id: setting.placement.shards[index]) {
        KJ_REQUIRE(KJ_ASSERT_NONNULL(shard.version(id)) == models[id]->version(), id);
        pushed += models[id]->pushed();
        dropped += models[id]->dropped();
      }
      KJ_REQUIRE(counts.pushed == pushed && counts.dropped == dropped);
      for (uint64_t staleness = 0; staleness < 4; staleness++) {
        uint64_t count = 0;
        for (auto id: setting.placement.shards[index]) {
          count += models[id]->withStaleness(staleness);
        }
        KJ_REQUIRE(counts.staleness[staleness] == count, staleness, count);
      }
    }
  }

  // Returns the values of all slices as one flat array.
  kj::Array<float> values() {
    auto flat = kj::heapArray<float>(setting.placement.parameters());
    for (auto& slice: setting.placement.slices) {
      SliceId id = &slice - setting.placement.slices.begin();
      auto lent = shards[slice.shard]->lend(0, id).values;
      memcpy(slice.of(flat.asPtr()).begin(), lent.begin(), lent.asBytes().size());
    }
    return flat;
  }

private:
  // The values that each worker has borrowed last, until it pushes the next step.
  struct Loan {
    kj::ArrayPtr<const float> values;
    kj::Array<float> copy;
  };

  Loan& loanOf(uint rank, SliceId id) { return loans[rank * setting.placement.slices.size() + id]; }

  void receive(Call& call, kj::ArrayPtr<const bool> counts) {
    auto& shard = *shards[call.shard];
    if (call.what == Call::REST) shard.rest(call.rank, call.number);
    if (call.what != Call::PUSH) return;
    auto due = kj::heapArray<uint64_t>(call.slices.size());
    for (auto i: kj::indices(call.slices)) {
      auto id = call.slices[i];
      if (counts[i]) loanOf(call.rank, id) = {};
      due[i] = shard.push(call.rank, id, call.number, call.gradients[i]);
      // A repeated gradient is not even read.
      if (!counts[i]) spoil(call.gradients[i]);
    }
    dues[call.index] = kj::mv(due);
  }

  const Setting& setting;
  kj::Own<Updater> updater;
  kj::Vector<kj::Own<Shard>> shards;
  kj::Vector<kj::Array<uint64_t>> dues;  // of each call, of each of its slices
  kj::Vector<Loan> loans;
};

Happened runMany(Way way) {
  Happened all;
  for (uint64_t seed = 1, count = schedulesOfEach(); seed <= count; seed++) {
    KJ_CONTEXT("the schedule of way and seed", uint(way), seed);
    Dice dice(seed * WAYS + uint(way));
    auto setting = Setting::draw(way, dice);
    DirectServers servers(setting);
    uint64_t plan = dice.roll(0, uint64_t(1) << 40);
    all.add(runSchedule(setting, servers, plan, plan));
  }
  MESSAGE("pushed ", all.pushed, ", dropped ", all.dropped, ", applied late ", all.stale,
      ", waited ", all.waited, ", repeated ", all.repeats, ", breaks ", all.breaks);
  CHECK(all.pushed > 0);
  CHECK(all.breaks > 0);
  CHECK(all.repeats > 0);
  return all;
}

TEST_CASE(
    "Shard: a round of all workers agrees with the model, also with repeated and late pushes") {
  auto all = runMany(Way::ALL);
  CHECK(all.dropped == 0);
  CHECK(all.waited > 0);
  CHECK(all.stale == 0);
  CHECK(all.reads > 0);
}

TEST_CASE(
    "Shard: a round of all workers has the same bits, whatever the order and the number of "
    "shards") {
  for (uint64_t seed = 1, count = schedulesOfEach() / 4; seed <= count; seed++) {
    KJ_CONTEXT("the schedule of seed", seed);
    kj::Array<float> bits;
    for (uint64_t delays = 1; delays <= 4; delays++) {
      Dice dice(seed);
      auto setting = Setting::draw(Way::ALL, dice);
      setting.rough = true;
      setting.rule.tolerance = 1e-3;
      setting.deal(uint(delays % 3 + 1));
      DirectServers servers(setting);
      runSchedule(setting, servers, seed, delays);
      auto values = servers.values();
      if (delays > 1) {
        REQUIRE(values.size() == bits.size());
        REQUIRE(memcmp(values.begin(), bits.begin(), bits.asBytes().size()) == 0);
      }
      bits = kj::mv(values);
    }
  }
}

TEST_CASE("Shard: if workers make the updates, answers are the sums of rounds") {
  auto all = runMany(Way::SUMS);
  CHECK(all.dropped == 0);
  CHECK(all.waited > 0);
  CHECK(all.stale == 0);
}

TEST_CASE("Shard: rounds agree with the model if workers hold shards and call their own directly") {
  auto all = runMany(Way::OWN_SHARDS);
  CHECK(all.dropped == 0);
  CHECK(all.waited > 0);
  CHECK(all.stale == 0);
  CHECK(all.reads > 0);
}

TEST_CASE("Shard: with FIRST, the same pushes count as in the model") {
  auto all = runMany(Way::FIRST);
  CHECK(all.dropped > 0);
  CHECK(all.waited > 0);
  CHECK(all.stale == 0);
}

TEST_CASE("Shard: with ANY, the same pushes count as in the model") {
  auto all = runMany(Way::ANY);
  CHECK(all.dropped > 0);
  CHECK(all.waited > 0);
  CHECK(all.stale == 0);
}

TEST_CASE("Shard: without a bound every push is a round by itself, and no worker waits") {
  auto all = runMany(Way::EACH);
  CHECK(all.dropped == 0);
  CHECK(all.waited == 0);
  CHECK(all.stale > 0);
}

TEST_CASE("Shard: no worker computes on values that miss a push older than the bound") {
  auto all = runMany(Way::BOUNDED);
  CHECK(all.dropped == 0);
  CHECK(all.waited > 0);
  CHECK(all.stale > 0);
  CHECK(all.reads > 0);
}

TEST_CASE("Shard: a correction uses the values that each worker has seen") {
  auto all = runMany(Way::COMPENSATED);
  CHECK(all.dropped == 0);
  CHECK(all.waited == 0);
  CHECK(all.stale > 0);
}

TEST_CASE("Shard: the centre of easgd moves towards the values that each worker reports") {
  auto all = runMany(Way::ELASTIC);
  CHECK(all.dropped == 0);
  CHECK(all.waited == 0);
  CHECK(all.stale > 0);
}

TEST_CASE("Shard: an update gets the staleness of its push") {
  auto all = runMany(Way::STALENESS_AWARE);
  CHECK(all.dropped == 0);
  CHECK(all.stale > 0);
}

}  // namespace
}  // namespace rpc
