#include "rpc/shard.h"

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

void add(kj::ArrayPtr<float> sum, kj::ArrayPtr<const float> more) {
  float* __restrict__ a = sum.begin();
  const float* __restrict__ b = more.begin();
  for (size_t i = 0, n = sum.size(); i < n; i++) a[i] += b[i];
}

}  // namespace

Shard::Shard(
    const Placement& placement, uint shard, const Mode& mode, uint workers, Updater& updater)
    : updater(updater), workers(workers), roundSize(pushesPerRound(mode, workers)) {
  KJ_REQUIRE(shard < placement.shards.size() && workers >= 1);
  auto& ids = placement.shards[shard];
  pieces = kj::heapArray<Piece>(ids.size());
  pieceOf = kj::heapArray<uint>(placement.slices.size());
  for (auto& index: pieceOf) index = NONE;
  uninitialized = ids.size();

  for (auto i: kj::indices(ids)) {
    pieceOf[ids[i]] = i;
    auto& piece = pieces[i];
    piece.slice = &placement.slices[ids[i]];
    uint64_t size = piece.slice->size;
    for (uint buffer = 0; buffer < 2; buffer++) piece.buffers.add(Buffer{makeValues(size)});
    piece.lentTo = kj::heapArray<uint>(workers);
    for (auto& index: piece.lentTo) index = NONE;
    piece.state = kj::heapArray<float>(size * updater.stateArrays(*piece.slice));
    memset(piece.state.begin(), 0, piece.state.asBytes().size());
    piece.nextStep = kj::heapArray<uint64_t>(workers);
    for (auto& step: piece.nextStep) step = 0;
    if (roundSize > 1) {
      piece.sum = kj::heapArray<float>(size);
      piece.early = kj::heapArray<kj::ArrayPtr<const float>>(workers);
    }
  }
}

void Shard::checkInitialize(SliceId id, kj::ArrayPtr<const float> values) const {
  auto& piece = find(id);
  KJ_REQUIRE(!piece.initialized, "the slice already has its initial values", id);
  KJ_REQUIRE(values.size() == piece.slice->size,
      "the initial values of a slice must have the slice's size", id, values.size(),
      piece.slice->size);
}

void Shard::initialize(SliceId id, kj::ArrayPtr<const float> values) {
  checkInitialize(id, values);
  auto& piece = find(id);
  copy(piece.buffers[piece.current].values, values);
  piece.initialized = true;
  --uninitialized;
}

bool Shard::isInitialized() const {
  return uninitialized == 0;
}

void Shard::checkPush(
    uint rank, SliceId id, uint64_t step, kj::ArrayPtr<const float> gradient) const {
  auto& piece = find(id);
  KJ_REQUIRE(rank < workers, "there is no worker of this rank", rank, workers);
  KJ_REQUIRE(piece.initialized, "a gradient came before the slice's initial values", id, rank);
  KJ_REQUIRE(gradient.size() == piece.slice->size, "a gradient must have its slice's size", id,
      rank, gradient.size(), piece.slice->size);
  auto expected = piece.nextStep[rank];
  // With several pushes a round, a worker that has pushed in this one must wait for the next.
  KJ_REQUIRE(step < expected || (step == expected && (roundSize == 1 || step == piece.version)),
      "a worker pushed a step that is not its next", id, rank, step, expected, piece.version);
}

uint64_t Shard::push(uint rank, SliceId id, uint64_t step, kj::ArrayPtr<const float> gradient) {
  checkPush(rank, id, step, gradient);
  auto& piece = find(id);
  auto due = [&]() { return roundSize > 1 ? step + 1 : piece.version; };

  giveBack(piece, rank);
  if (step < piece.nextStep[rank]) return due();
  piece.nextStep[rank] = step + 1;
  if (roundSize == 1) {
    apply(piece, gradient);
  } else {
    addInOrder(piece, rank, gradient);
  }
  return due();
}

void Shard::addInOrder(Piece& piece, uint rank, kj::ArrayPtr<const float> gradient) {
  piece.early[rank] = gradient;
  for (; piece.added < workers && piece.early[piece.added] != nullptr; piece.added++) {
    auto& next = piece.early[piece.added];
    // The first is copied: 0 + -0 would lose its sign.
    piece.added == 0 ? copy(piece.sum, next) : add(piece.sum, next);
    next = nullptr;
  }
  if (piece.added == workers) {
    apply(piece, piece.sum);
    piece.added = 0;
  }
}

void Shard::apply(Piece& piece, kj::ArrayPtr<const float> gradientSum) {
  uint next = 0;
  while (
      next < piece.buffers.size() && (next == piece.current || piece.buffers[next].borrowers > 0)) {
    next++;
  }
  if (next == piece.buffers.size()) piece.buffers.add(Buffer{makeValues(piece.slice->size)});
  updater.update(*piece.slice, piece.version, gradientSum, piece.buffers[piece.current].values,
      piece.buffers[next].values, piece.state);
  piece.current = next;
  piece.version++;
}

kj::Maybe<uint64_t> Shard::version(SliceId id) const {
  auto& piece = find(id);
  if (!piece.initialized) return nullptr;
  return piece.version;
}

Shard::Lent Shard::lend(uint rank, SliceId id) {
  auto& piece = find(id);
  KJ_REQUIRE(rank < workers, "there is no worker of this rank", rank, workers);
  KJ_REQUIRE(piece.initialized, "the slice has no values yet", id);
  giveBack(piece, rank);
  auto& buffer = piece.buffers[piece.current];
  buffer.borrowers++;
  piece.lentTo[rank] = piece.current;
  return {piece.version, buffer.values};
}

void Shard::giveBack(Piece& piece, uint rank) {
  auto& lent = piece.lentTo[rank];
  if (lent == NONE) return;
  piece.buffers[lent].borrowers--;
  lent = NONE;
}

const Shard::Piece& Shard::find(SliceId id) const {
  KJ_REQUIRE(id < pieceOf.size() && pieceOf[id] != NONE, "this shard has no such slice", id);
  return pieces[pieceOf[id]];
}

Shard::Piece& Shard::find(SliceId id) {
  return const_cast<Piece&>(kj::implicitCast<const Shard&>(*this).find(id));
}

}  // namespace rpc
