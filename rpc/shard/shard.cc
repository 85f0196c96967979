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

void copy(kj::ArrayPtr<float> target, kj::ArrayPtr<const float> source) {
  memcpy(target.begin(), source.begin(), source.size() * sizeof(float));
}

// sum ← a + b.
void add(kj::ArrayPtr<const float> a, kj::ArrayPtr<const float> b, kj::ArrayPtr<float> sum) {
  for (size_t i = 0, n = sum.size(); i < n; i++) sum[i] = a[i] + b[i];
}

// The sum of gradients, one after another: of one the floats in place if it has them, else in
// `memory`, which is made when it is first needed.
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
      if (sum.begin() != memory.begin()) copy(room(), sum);
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
      rests(kj::heapArray<bool>(rounds.workers)) {
  KJ_REQUIRE(shard < placement.shards.size() && rounds.workers >= 1 && rounds.aggregate >= 1);
  auto& ids = placement.shards[shard];
  pieces = kj::heapArray<Piece>(ids.size());
  pieceOf = kj::heapArray<uint>(placement.slices.size());
  for (auto& index: pieceOf) index = NONE;
  for (auto& flag: rests) flag = false;
  uninitialized = ids.size();

  for (auto i: kj::indices(ids)) {
    pieceOf[ids[i]] = i;
    auto& piece = pieces[i];
    piece.slice = &placement.slices[ids[i]];
    uint64_t size = piece.slice->size;
    for (uint buffer = 0; buffer < 2; buffer++) addBuffer(piece);
    piece.state = makeValues(size * updater.stateArrays(*piece.slice));
    piece.members = kj::heapArray<Member>(rounds.workers);
    for (auto& member: piece.members) member.lent = NONE;
  }
}

void Shard::checkInitialize(SliceId id, kj::ArrayPtr<const float> values) const {
  auto& piece = find(id);
  KJ_REQUIRE(values.size() == piece.slice->size,
      "the initial values of a slice must have the slice's size", id, values.size(),
      piece.slice->size);
  if (!piece.initialized) return;
  bool repeated = piece.version == 0 && memcmp(piece.buffers[piece.current].values.begin(),
                                            values.begin(), values.asBytes().size()) == 0;
  KJ_REQUIRE(repeated, "the slice already has its initial values", id);
}

void Shard::initialize(SliceId id, kj::ArrayPtr<const float> values) {
  checkInitialize(id, values);
  auto& piece = find(id);
  if (piece.initialized) return;
  copy(piece.buffers[piece.current].values, values);
  piece.initialized = true;
  --uninitialized;
  // Rank 0 has these values.
  lend(0, id);
}

bool Shard::isInitialized() const {
  return uninitialized == 0;
}

void Shard::checkPush(uint rank, SliceId id, uint64_t step, const codec::Coded& gradient) const {
  auto& piece = find(id);
  KJ_REQUIRE(rank < rounds.workers, "there is no worker of this rank", rank, rounds.workers);
  KJ_REQUIRE(piece.initialized, "a gradient came before the slice's initial values", id, rank);
  auto& member = piece.members[rank];
  KJ_REQUIRE(step < member.steps || (step == member.steps && member.due <= progress(piece)),
      "a worker pushed a step that is not its next", id, rank, step, member.steps, piece.version);
  KJ_REQUIRE(
      step < member.steps || !rests[rank], "a worker pushed while it rested", id, rank, step);
  KJ_REQUIRE(step < member.steps || !rounds.keepsSeen || member.lent != NONE,
      "a gradient came of values that its worker was not given", id, rank, step);
  KJ_CONTEXT("a gradient", id, rank);
  gradient.check(piece.slice->size);
}

uint64_t Shard::push(uint rank, SliceId id, uint64_t step, const codec::Coded& gradient) {
  checkPush(rank, id, step, gradient);
  auto& piece = find(id);
  auto& member = piece.members[rank];
  if (step == member.steps) {
    member.steps++;
    counted.pushed++;
    member.due = count(piece, rank, gradient);
    giveBack(piece, member);
  }
  return member.due;
}

// Puts a gradient where it belongs, or drops it. Returns the progress that answers it.
uint64_t Shard::count(Piece& piece, uint rank, const codec::Coded& gradient) {
  auto& member = piece.members[rank];
  // With ALL nobody is: a round waits for everybody.
  bool late = member.seen < piece.version && rounds.counted != Rounds::ALL;
  switch (rounds.counted) {
    case Rounds::ALL:
    case Rounds::FIRST:
    case Rounds::ANY: {
      if (late) {
        counted.dropped++;
        return piece.version;
      }
      uint64_t due = piece.version + 1;
      giveBack(piece, member);
      if (rounds.counted == Rounds::ANY) {
        addAsItCame(piece, gradient);
      } else {
        member.gradient = gradient;
        piece.pushes++;
        closeRoundIfFull(piece);
      }
      return due;
    }
    case Rounds::EACH: {
      uint64_t staleness = piece.version - member.seen;
      Sum sum(piece.sum, piece.slice->size);
      sum.add(gradient);
      Round round{
          piece.version, sum.get(), rounds.divisor(1), rounds.tellsStaleness ? staleness : 0};
      if (rounds.keepsSeen) {
        round.seen = piece.buffers[member.lent].values;
      } else {
        giveBack(piece, member);
      }
      apply(piece, round, staleness);
      // Not before the slowest is near enough.
      return rounds.isBounded() ? member.steps - kj::min(member.steps, rounds.staleness)
                                : piece.version;
    }
  }
  KJ_UNREACHABLE;
}

void Shard::rest(uint rank, uint64_t number) {
  KJ_REQUIRE(rank < rounds.workers, "there is no worker of this rank", rank, rounds.workers);
  KJ_REQUIRE(number <= rested, "a worker rests before all others have", rank, number, rested);
  if (number < rested || rests[rank]) return;
  for (auto& piece: pieces) {
    KJ_REQUIRE(piece.members[rank].due <= progress(piece),
        "a worker rests before its pushes are answered", rank, piece.members[rank].steps);
  }
  rests[rank] = true;
  resting++;
  if (resting == rounds.workers) {
    for (auto& flag: rests) flag = false;
    resting = 0;
    rested++;
    // Progress may fall, and all is answered.
    for (auto& piece: pieces) {
      for (auto& member: piece.members) member.due = 0;
    }
  } else if (rounds.counted == Rounds::FIRST) {
    for (auto& piece: pieces) closeRoundIfFull(piece);
  }
}

// Of a round in which different workers push: those that rest cannot.
uint Shard::pushesNeeded() const {
  return rounds.aggregate - kj::min(rounds.aggregate, resting);
}

// Adds the gradients of a round in rank order, and applies them.
void Shard::closeRoundIfFull(Piece& piece) {
  if (piece.pushes == 0 || piece.pushes < pushesNeeded()) return;
  Sum sum(piece.sum, piece.slice->size);
  for (auto& member: piece.members) {
    KJ_IF_MAYBE(gradient, member.gradient) {
      sum.add(*gradient);
      member.gradient = nullptr;
    }
  }
  apply(piece, Round{piece.version, sum.get(), rounds.divisor(piece.pushes)});
}

void Shard::addAsItCame(Piece& piece, const codec::Coded& gradient) {
  piece.pushes++;
  if (rounds.aggregate == 1) {
    Sum sum(piece.sum, piece.slice->size);
    sum.add(gradient);
    apply(piece, Round{piece.version, sum.get(), rounds.divisor(1)});
    return;
  }
  if (piece.sum == nullptr) piece.sum = kj::heapArray<float>(piece.slice->size);
  // The first is copied: 0 + -0 would lose its sign.
  piece.pushes == 1 ? gradient.decode(piece.sum) : gradient.add(piece.sum);
  if (piece.pushes == rounds.aggregate) {
    apply(piece, Round{piece.version, piece.sum, rounds.divisor(piece.pushes)});
  }
}

void Shard::apply(Piece& piece, const Round& round, uint64_t staleness) {
  uint next = 0;
  while (
      next < piece.buffers.size() && (next == piece.current || piece.buffers[next].borrowers > 0)) {
    next++;
  }
  if (next == piece.buffers.size()) addBuffer(piece);
  updater.update(*piece.slice, round, piece.buffers[piece.current].values,
      piece.buffers[next].values, piece.state);
  auto row = kj::min(staleness, uint64_t(Counts::STALENESS_MAX));
  counted.staleness[row] += kj::max(1u, piece.pushes);
  piece.current = next;
  piece.version++;
  piece.pushes = 0;
}

void Shard::addBuffer(Piece& piece) {
  KJ_IF_MAYBE(give, memory) {
    SliceId id = piece.slice - slices.begin();
    auto values = (*give)(id, piece.buffers.size());
    KJ_REQUIRE(values.size() == piece.slice->size);
    piece.buffers.add(Buffer{kj::mv(values)});
  } else {
    piece.buffers.add(Buffer{makeValues(piece.slice->size)});
  }
}

kj::Maybe<uint64_t> Shard::version(SliceId id) const {
  auto& piece = find(id);
  if (!piece.initialized) return nullptr;
  return piece.version;
}

uint64_t Shard::progress(SliceId id) const {
  return progress(find(id));
}

uint64_t Shard::progress(const Piece& piece) const {
  if (rounds.counted == Rounds::ANY) {
    bool atOnce = rounds.workers < rounds.aggregate || resting > 0;
    return piece.version + (atOnce ? 1 : 0);
  }
  return rounds.isBounded() ? slowest(piece) : piece.version;
}

// Steps that every worker has pushed who does not rest.
uint64_t Shard::slowest(const Piece& piece) const {
  uint64_t least = kj::maxValue;
  for (auto rank: kj::indices(piece.members)) {
    if (!rests[rank]) least = kj::min(least, piece.members[rank].steps);
  }
  return least;
}

Shard::Lent Shard::lend(uint rank, SliceId id) {
  auto& piece = find(id);
  KJ_REQUIRE(rank < rounds.workers, "there is no worker of this rank", rank, rounds.workers);
  KJ_REQUIRE(piece.initialized, "the slice has no values yet", id);
  auto& member = piece.members[rank];
  giveBack(piece, member);
  auto& buffer = piece.buffers[piece.current];
  buffer.borrowers++;
  member.lent = piece.current;
  member.seen = piece.version;
  return {piece.version, buffer.values, piece.current};
}

void Shard::giveBack(Piece& piece, Member& member) {
  if (member.lent == NONE) return;
  piece.buffers[member.lent].borrowers--;
  member.lent = NONE;
}

const Shard::Piece& Shard::find(SliceId id) const {
  KJ_REQUIRE(id < pieceOf.size() && pieceOf[id] != NONE, "this shard has no such slice", id);
  return pieces[pieceOf[id]];
}

Shard::Piece& Shard::find(SliceId id) {
  return const_cast<Piece&>(kj::implicitCast<const Shard&>(*this).find(id));
}

}  // namespace rpc
