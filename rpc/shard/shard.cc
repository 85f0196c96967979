#include "rpc/shard/shard.h"

#include <kj/debug.h>

#include <cstring>

namespace rpc {

namespace {

constexpr uint NONE = kj::maxValue;

kj::Array<float> makeValues(uint64_t size) {
  auto values = kj::heapArray<float>(size);
  memset(values.begin(), 0, values.asBytes().size());
  return values;
}

// sum ← a + b.
void add(kj::ArrayPtr<const float> a, kj::ArrayPtr<const float> b, kj::ArrayPtr<float> sum) {
  for (size_t i = 0, n = sum.size(); i < n; i++) sum[i] = a[i] + b[i];
}

// Adds gradients one after another. The sum of a single gradient is its floats in place, if it has
// them. Otherwise the sum is in `memory`, which is made when first needed.
class Sum {
public:
  Sum(kj::Array<float>& memory, uint64_t size): memory(memory), size(size) {}

  void add(const codec::Coded& gradient) {
    KJ_IF_MAYBE(floats, gradient.inPlace()) {
      if (sum == nullptr) {
        sum = *floats;
      } else {
        rpc::add(sum, *floats, room());
        sum = memory;
      }
    } else if (sum == nullptr) {
      gradient.decode(room());
      sum = memory;
    } else {
      if (sum.begin() != memory.begin()) copy(sum, room());
      gradient.add(memory);
      sum = memory;
    }
  }

  kj::ArrayPtr<const float> get() const { return sum; }

private:
  kj::ArrayPtr<float> room() {
    if (memory == nullptr) memory = kj::heapArray<float>(size);
    return memory;
  }

  kj::Array<float>& memory;
  uint64_t size;
  kj::ArrayPtr<const float> sum = nullptr;
};

}  // namespace

Shard::Shard(const Placement& placement, uint shard, const Rounds& rounds, Updater& updater,
    kj::Maybe<ValueMemory> ownMemory)
    : rounds(rounds),
      slices(placement.slices),
      updater(updater),
      memory(kj::mv(ownMemory)),
      rests(kj::heapArray<bool>(rounds.workers)),
      memberships(kj::heapArray<Membership>(rounds.workers)) {
  KJ_REQUIRE(shard < placement.shards.size() && rounds.workers >= 1 && rounds.aggregate >= 1);
  auto& ids = placement.shards[shard];
  heldSlices = kj::heapArray<HeldSlice>(ids.size());
  heldIndex = kj::heapArray<uint>(placement.slices.size());
  for (auto& index: heldIndex) index = NONE;
  for (auto& flag: rests) flag = false;
  for (auto& each: memberships) each = Membership::MEMBER;
  uninitialized = ids.size();

  for (auto i: kj::indices(ids)) {
    heldIndex[ids[i]] = i;
    auto& held = heldSlices[i];
    held.slice = &placement.slices[ids[i]];
    uint64_t size = held.slice->size;
    for (uint buffer = 0; buffer < 2; buffer++) addBuffer(held);
    held.state = makeValues(size * updater.stateArrays(*held.slice));
    held.workers = kj::heapArray<WorkerState>(rounds.workers);
    for (auto& worker: held.workers) worker.lent = NONE;
  }
}

void Shard::checkInitialize(SliceId id, kj::ArrayPtr<const float> values) const {
  auto& held = find(id);
  KJ_REQUIRE(values.size() == held.slice->size,
      "the initial values of a slice must have the slice's size", id, values.size(),
      held.slice->size);
  if (!held.initialized) return;
  bool repeated = held.version == 0 && memcmp(held.buffers[held.current].values.begin(),
                                           values.begin(), values.asBytes().size()) == 0;
  KJ_REQUIRE(repeated, "the slice already has its initial values", id);
}

void Shard::initialize(SliceId id, kj::ArrayPtr<const float> values) {
  checkInitialize(id, values);
  auto& held = find(id);
  if (held.initialized) return;
  copy(values, held.buffers[held.current].values);
  held.initialized = true;
  --uninitialized;
  // Rank 0 already has these values, so it has borrowed this version.
  lend(0, id);
}

bool Shard::isInitialized() const {
  return uninitialized == 0;
}

void Shard::checkPush(uint rank, SliceId id, uint64_t step, const codec::Coded& gradient) const {
  auto& held = find(id);
  requireRank(rank);
  KJ_REQUIRE(held.initialized, "a gradient came before the slice's initial values", id, rank);
  requireMember(rank);
  auto& worker = held.workers[rank];
  KJ_REQUIRE(step < worker.steps || (step == worker.steps && worker.due <= progress(held)),
      "a worker pushed a step that is not its next one", id, rank, step, worker.steps,
      held.version);
  KJ_REQUIRE(
      step < worker.steps || !rests[rank], "a worker pushed while it rested", id, rank, step);
  KJ_REQUIRE(step < worker.steps || !rounds.keepsSeen || worker.lent != NONE,
      "a worker pushed a gradient for values that it was not given", id, rank, step);
  KJ_CONTEXT("a gradient", id, rank);
  gradient.check(held.slice->size);
}

uint64_t Shard::push(uint rank, SliceId id, uint64_t step, const codec::Coded& gradient) {
  checkPush(rank, id, step, gradient);
  auto& held = find(id);
  auto& worker = held.workers[rank];
  if (step == worker.steps) {
    worker.steps++;
    counted.pushed++;
    worker.due = count(held, rank, gradient);
    giveBack(held, worker);
  }
  return worker.due;
}

// Adds a gradient to its round, or drops it. Returns the progress that answers it.
uint64_t Shard::count(HeldSlice& held, uint rank, const codec::Coded& gradient) {
  auto& worker = held.workers[rank];
  // With ALL, no push is late, because a round waits for all workers.
  bool late = worker.seen < held.version && rounds.counted != Rounds::ALL;
  switch (rounds.counted) {
    case Rounds::ALL:
    case Rounds::FIRST:
    case Rounds::ANY: {
      if (late) {
        counted.dropped++;
        return held.version;
      }
      uint64_t due = held.version + 1;
      giveBack(held, worker);
      if (rounds.counted == Rounds::ANY) {
        addAsItCame(held, gradient);
      } else {
        worker.gradient = gradient;
        held.pushes++;
        closeRoundIfFull(held);
      }
      return due;
    }
    case Rounds::EACH: {
      uint64_t staleness = held.version - worker.seen;
      Sum sum(held.sum, held.slice->size);
      sum.add(gradient);
      Round round{
          held.version, sum.get(), rounds.divisor(1), rounds.passesStaleness ? staleness : 0};
      if (rounds.keepsSeen) {
        round.seen = held.buffers[worker.lent].values;
      } else {
        giveBack(held, worker);
      }
      apply(held, round, staleness);
      // With a bound, the answer waits until the slowest worker is near enough.
      return rounds.isBounded() ? worker.steps - kj::min(worker.steps, rounds.staleness)
                                : held.version;
    }
  }
  KJ_UNREACHABLE;
}

void Shard::rest(uint rank, uint64_t number) {
  requireRank(rank);
  KJ_REQUIRE(
      number <= rested, "a worker rests again before all others have rested", rank, number, rested);
  if (number < rested || rests[rank]) return;
  for (auto& held: heldSlices) {
    KJ_REQUIRE(held.workers[rank].due <= progress(held),
        "a worker rests before its pushes are answered", rank, held.workers[rank].steps);
  }
  rests[rank] = true;
  resting++;
  if (endRestIfAll()) return;
  if (rounds.counted == Rounds::FIRST) {
    for (auto& held: heldSlices) closeRoundIfFull(held);
  }
}

// If all members rest, lets all of them count again.
bool Shard::endRestIfAll() {
  if (resting == 0 || resting + outside < rounds.workers) return false;
  for (auto& flag: rests) flag = false;
  resting = 0;
  rested++;
  // From here on progress may be lower. No push waits for it.
  for (auto& held: heldSlices) {
    for (auto& worker: held.workers) worker.due = 0;
  }
  return true;
}

void Shard::requireRank(uint rank) const {
  KJ_REQUIRE(rank < rounds.workers, "there is no worker of this rank", rank, rounds.workers);
}

void Shard::requireMember(uint rank) const {
  if (isMember(rank)) return;
  kj::throwFatalException(KJ_EXCEPTION(
      DISCONNECTED, "the job continues without this worker, because it was lost", rank));
}

void Shard::fence(uint rank) {
  KJ_REQUIRE(rounds.countsEveryPush(), "in this mode, the members of a job do not change");
  requireRank(rank);
  if (memberships[rank] != Membership::MEMBER) return;
  memberships[rank] = Membership::FENCED;
  for (auto& held: heldSlices) giveBack(held, held.workers[rank]);
}

kj::Array<Shard::SliceSteps> Shard::pushedBy(uint rank) const {
  requireRank(rank);
  return KJ_MAP(held, heldSlices) {
    return SliceSteps{SliceId(held.slice - slices.begin()), held.workers[rank].steps};
  };
}

void Shard::leave(uint rank) {
  requireRank(rank);
  if (memberships[rank] == Membership::OUTSIDE) return;
  KJ_REQUIRE(outside + 1 < rounds.workers, "the last worker leaves", rank);
  fence(rank);
  memberships[rank] = Membership::OUTSIDE;
  outside++;
  if (rests[rank]) {
    rests[rank] = false;
    resting--;
  }
  endRestIfAll();
  for (auto& held: heldSlices) {
    if (held.workers[rank].gradient != nullptr) held.ofLeavers++;
    closeRoundIfFull(held);
  }
}

void Shard::admit(uint rank, uint64_t step) {
  requireRank(rank);
  KJ_REQUIRE(memberships[rank] == Membership::OUTSIDE, "this worker is a member already", rank);
  for (auto& held: heldSlices) {
    KJ_REQUIRE(held.initialized && held.pushes == 0,
        "a worker joins while a round waits for pushes", rank, held.pushes);
    for (auto other: kj::indices(held.workers)) {
      auto& worker = held.workers[other];
      KJ_REQUIRE(!isMember(other) || (worker.steps == step && worker.due <= progress(held)),
          "a worker joins at a step, but another member is at a different one", rank, step, other,
          worker.steps);
    }
  }
  memberships[rank] = Membership::MEMBER;
  outside--;
  for (auto& held: heldSlices) {
    auto& worker = held.workers[rank];
    worker.steps = step;
    worker.due = 0;
  }
}

// Returns how many pushes fill a round to which each worker pushes once. Workers that rest do not
// push.
uint Shard::pushesNeeded(const HeldSlice& held) const {
  return rounds.aggregate - kj::min(rounds.aggregate, resting) - outside + held.ofLeavers;
}

// If the round is full, adds its gradients in rank order and applies the sum.
void Shard::closeRoundIfFull(HeldSlice& held) {
  if (held.pushes == 0 || held.pushes < pushesNeeded(held)) return;
  Sum sum(held.sum, held.slice->size);
  for (auto& worker: held.workers) {
    KJ_IF_MAYBE(gradient, worker.gradient) {
      sum.add(*gradient);
      worker.gradient = nullptr;
    }
  }
  apply(held, Round{held.version, sum.get(), rounds.divisor(held.pushes)});
}

// With ANY: adds a gradient to the round immediately, and applies the round if that fills it.
void Shard::addAsItCame(HeldSlice& held, const codec::Coded& gradient) {
  held.pushes++;
  if (rounds.aggregate == 1) {
    Sum sum(held.sum, held.slice->size);
    sum.add(gradient);
    apply(held, Round{held.version, sum.get(), rounds.divisor(1)});
    return;
  }
  if (held.sum == nullptr) held.sum = kj::heapArray<float>(held.slice->size);
  // The first gradient is copied, because 0 + -0 would lose its sign.
  held.pushes == 1 ? gradient.decode(held.sum) : gradient.add(held.sum);
  if (held.pushes == rounds.aggregate) {
    apply(held, Round{held.version, held.sum, rounds.divisor(held.pushes)});
  }
}

void Shard::apply(HeldSlice& held, const Round& round, uint64_t staleness) {
  uint next = 0;
  while (next < held.buffers.size() && (next == held.current || held.buffers[next].borrowers > 0)) {
    next++;
  }
  if (next == held.buffers.size()) addBuffer(held);
  updater.update(
      *held.slice, round, held.buffers[held.current].values, held.buffers[next].values, held.state);
  auto row = kj::min(staleness, uint64_t(Counts::STALENESS_MAX));
  counted.staleness[row] += kj::max(1u, held.pushes);
  held.current = next;
  held.version++;
  held.pushes = 0;
  held.ofLeavers = 0;
}

void Shard::addBuffer(HeldSlice& held) {
  KJ_IF_MAYBE(give, memory) {
    SliceId id = held.slice - slices.begin();
    auto values = (*give)(id, held.buffers.size());
    KJ_REQUIRE(values.size() == held.slice->size);
    held.buffers.add(Buffer{kj::mv(values)});
  } else {
    held.buffers.add(Buffer{makeValues(held.slice->size)});
  }
}

kj::Maybe<uint64_t> Shard::version(SliceId id) const {
  auto& held = find(id);
  if (!held.initialized) return nullptr;
  return held.version;
}

void Shard::requireSlice(SliceId id) const {
  find(id);
}

uint64_t Shard::progress(SliceId id) const {
  return progress(find(id));
}

uint64_t Shard::progress(const HeldSlice& held) const {
  if (rounds.counted == Rounds::ANY) {
    bool atOnce = rounds.workers < rounds.aggregate || resting > 0;
    return held.version + (atOnce ? 1 : 0);
  }
  return rounds.isBounded() ? slowest(held) : held.version;
}

// Returns how many steps all members that do not rest have pushed at least.
uint64_t Shard::slowest(const HeldSlice& held) const {
  uint64_t least = kj::maxValue;
  for (auto rank: kj::indices(held.workers)) {
    if (rests[rank] || memberships[rank] == Membership::OUTSIDE) continue;
    least = kj::min(least, held.workers[rank].steps);
  }
  return least;
}

Shard::Lent Shard::lend(uint rank, SliceId id) {
  auto& held = find(id);
  requireRank(rank);
  KJ_REQUIRE(held.initialized, "the slice has no values yet", id);
  requireMember(rank);
  auto& worker = held.workers[rank];
  giveBack(held, worker);
  auto& buffer = held.buffers[held.current];
  buffer.borrowers++;
  worker.lent = held.current;
  worker.seen = held.version;
  return {held.version, buffer.values, held.current};
}

void Shard::giveBack(HeldSlice& held, WorkerState& worker) {
  if (worker.lent == NONE) return;
  held.buffers[worker.lent].borrowers--;
  worker.lent = NONE;
}

void Shard::visitState(configs::StateVisitor& visitor) {
  size_t size = heldSlices.size();
  kj::Vector<kj::ArrayPtr<float>> values(size), states(size), sums(size);
  auto versions = kj::heapArray<uint64_t>(size);
  auto pushes = kj::heapArray<uint64_t>(size);
  auto steps = kj::heapArray<uint64_t>(size);
  for (size_t i: kj::indices(heldSlices)) {
    auto& held = heldSlices[i];
    values.add(held.buffers[held.current].values);
    states.add(held.state);
    if (rounds.counted == Rounds::ANY) {
      if (held.sum == nullptr) held.sum = makeValues(held.slice->size);
      sums.add(held.sum);
    }
    versions[i] = held.version;
    pushes[i] = held.pushes;
    kj::Maybe<uint64_t> pushed;
    for (uint rank: kj::indices(held.workers)) {
      auto& worker = held.workers[rank];
      KJ_REQUIRE(worker.gradient == nullptr, "a round waits for pushes", held.version, rank);
      if (!isMember(rank)) continue;
      KJ_REQUIRE(pushed.orDefault(worker.steps) == worker.steps, "workers are at different steps",
          rank, worker.steps);
      pushed = worker.steps;
    }
    steps[i] = pushed.orDefault(0);
  }
  visitor.floats("shard.optimizer", states);
  visitor.floats("shard.sums", sums);
  visitor.counts("shard.versions", versions);
  visitor.counts("shard.pushes", pushes);
  visitor.counts("shard.steps", steps);
  visitCounts(visitor);
  // These come last, because a checkpoint may leave them out: see runner/checkpoints/kept_parts.h.
  visitor.floats("shard.values", values);
  for (size_t i: kj::indices(heldSlices)) {
    auto& held = heldSlices[i];
    held.version = versions[i];
    held.pushes = uint(pushes[i]);
    for (auto& worker: held.workers) worker.steps = steps[i];
  }
}

void Shard::visitCounts(configs::StateVisitor& visitor) {
  visitor.count("shard.rested", rested);
  visitor.count("shard.pushed", counted.pushed);
  visitor.count("shard.dropped", counted.dropped);
  visitor.counts("shard.staleness", counted.staleness);
}

void Shard::restore(configs::StateVisitor& visitor) {
  KJ_REQUIRE(uninitialized == heldSlices.size(), "the shard has values already");
  visitState(visitor);
  for (auto& held: heldSlices) held.initialized = true;
  uninitialized = 0;
}

const Shard::HeldSlice& Shard::find(SliceId id) const {
  KJ_REQUIRE(id < heldIndex.size() && heldIndex[id] != NONE, "this shard has no such slice", id);
  return heldSlices[heldIndex[id]];
}

Shard::HeldSlice& Shard::find(SliceId id) {
  return const_cast<HeldSlice&>(kj::implicitCast<const Shard&>(*this).find(id));
}

}  // namespace rpc
