#include "io/batches/division.h"

#include <kj/debug.h>

#include <algorithm>

namespace io {

namespace {

// More steps than a job can make.
constexpr uint64_t STEPS_MAX = 1ull << 40;
// Records that go back, and steps that were begun when members changed, move the end of an epoch by
// fewer epochs than this.
constexpr uint EPOCHS_BEHIND_MAX = 10000;

}  // namespace

Division::Division(uint64_t records, uint batchSize, uint workers,
    kj::ArrayPtr<const MemberChange> changes, DivisionStart start)
    : records(records), batchSize(batchSize), start(start) {
  KJ_REQUIRE(records > 0 && batchSize > 0 && workers > 0, records, batchSize, workers);
  Stretch all{start.step, false, start.step, start.records, {}, start.records, {}};
  for (uint rank = 0; rank < workers; rank++) all.members.add(rank);
  stretches.add(kj::mv(all));

  auto sorted = kj::heapArray<MemberChange>(changes);
  bool atEpochEnds =
      std::any_of(changes.begin(), changes.end(), [](const MemberChange& c) { return c.from > 0; });
  std::stable_sort(sorted.begin(), sorted.end(), [&](const MemberChange& a, const MemberChange& b) {
    auto placeOf = [](const MemberChange& c) { return c.from > 0 ? c.from : c.step; };
    if (placeOf(a) != placeOf(b)) return placeOf(a) < placeOf(b);
    // At the end of an epoch, a worker may be lost, join and be lost again.
    if (atEpochEnds) return false;
    // A run that repeats these losses may learn of them in another order.
    return a.joins != b.joins ? a.joins : a.rank < b.rank;
  });
  for (auto& change: sorted) addStretch(change);
}

uint64_t Division::firstOf(const MemberChange& change) const {
  if (change.joins || change.from > 0) return change.first();
  auto& last = stretches.back();
  if (last.isLoss && last.changed == change.step) return last.begin;
  auto& stretch = stretchAt(change.step);
  uint64_t used = stretch.consumed + (change.step - stretch.begin) * stretch.perStep(batchSize);
  uint64_t epoch = kj::max(uint64_t(2), used / records) - 1;
  for (uint more = 0; stepsUntilEndOf(epoch) <= change.step; more++) {
    KJ_REQUIRE(more < EPOCHS_BEHIND_MAX, "changes of the members that do not fit", change.step);
    epoch++;
  }
  return kj::min(change.first(), stepsUntilEndOf(epoch));
}

void Division::addStretch(const MemberChange& change) {
  auto& last = stretches.back();
  KJ_REQUIRE(change.step <= STEPS_MAX && change.from <= STEPS_MAX, "no job has so many steps",
      change.step, change.from);
  uint64_t first = firstOf(change);
  KJ_REQUIRE(first >= last.begin, "changes of the members in a wrong order", first, last.begin);
  uint64_t used = (first - last.begin) * last.perStep(batchSize);
  bool isLoss = !change.joins && change.from == 0;
  Stretch next{change.step, isLoss, first, last.consumed + used, {}, 0, {}};
  next.members.addAll(last.members);
  if (change.joins) {
    next.members.add(change.rank);
  } else {
    for (uint64_t step = change.step + (change.counts ? 1 : 0); step < first; step++) {
      auto& stretch = stretchAt(step);
      KJ_IF_MAYBE(offset, offsetOf(stretch, step, change.rank)) {
        add(stretch, *offset, batchSize, next.returned);
        KJ_REQUIRE(next.consumed >= batchSize, "more records go back than were used");
        next.consumed -= batchSize;
      }
    }
    auto end = std::remove(next.members.begin(), next.members.end(), change.rank);
    next.members.truncate(end - next.members.begin());
  }
  std::sort(next.members.begin(), next.members.end());
  KJ_REQUIRE(next.members.size() > 0, "a job without workers", first);
  uint64_t returned = 0;
  for (auto& range: last.returned) returned += range.size;
  if (used < returned) add(last, used, returned - used, next.returned);
  next.rest = last.rest + (used > returned ? used - returned : 0);
  stretches.add(kj::mv(next));
}

const Division::Stretch& Division::stretchAt(uint64_t step) const {
  KJ_REQUIRE(step >= start.step, "a step before the job continued", step, start.step);
  size_t i = stretches.size() - 1;
  while (stretches[i].begin > step) i--;
  return stretches[i];
}

uint64_t Division::nextChangeAfter(uint64_t step) const {
  for (auto& stretch: stretches) {
    if (stretch.begin > step) return stretch.begin;
  }
  return kj::maxValue;
}

kj::ArrayPtr<const uint> Division::membersAt(uint64_t step) const {
  return stretchAt(step).members;
}

kj::Maybe<uint64_t> Division::offsetOf(const Stretch& stretch, uint64_t step, uint rank) const {
  auto& members = stretch.members;
  auto found = std::lower_bound(members.begin(), members.end(), rank);
  if (found == members.end() || *found != rank) return nullptr;
  uint64_t index = found - members.begin();
  return (step - stretch.begin) * stretch.perStep(batchSize) + index * batchSize;
}

void Division::add(const Stretch& stretch, uint64_t offset, uint64_t size, kj::Vector<Range>& out) {
  for (auto& range: stretch.returned) {
    if (size == 0) return;
    if (offset >= range.size) {
      offset -= range.size;
      continue;
    }
    uint64_t taken = kj::min(size, range.size - offset);
    out.add(Range{range.begin + offset, taken});
    offset = 0;
    size -= taken;
  }
  if (size > 0) out.add(Range{stretch.rest + offset, size});
}

void Division::places(uint64_t step, uint rank, kj::ArrayPtr<uint64_t> out) const {
  KJ_REQUIRE(out.size() == batchSize);
  auto& stretch = stretchAt(step);
  uint64_t offset = KJ_REQUIRE_NONNULL(offsetOf(stretch, step, rank),
      "a worker that is no member of the job reads records", rank, step);
  kj::Vector<Range> ranges;
  add(stretch, offset, batchSize, ranges);
  size_t i = 0;
  for (auto& range: ranges) {
    for (uint64_t n = 0; n < range.size; n++) out[i++] = range.begin + n;
  }
}

uint64_t Division::stepsUntilEndOf(uint64_t epoch) const {
  // The records that the earlier workers have left, fewer than one of their steps takes, belong to
  // the next epoch.
  if (epoch <= start.epoch) return start.step;
  uint64_t all = epoch * records;
  for (size_t i = 0;; i++) {
    auto& stretch = stretches[i];
    uint64_t left = all - kj::min(all, stretch.consumed);
    uint64_t end = stretch.begin + left / stretch.perStep(batchSize);
    // If two workers are lost in one epoch, the loss of the one that was further ahead may become
    // known first.
    bool isOver = true;
    for (auto& later: stretches.asPtr().slice(i + 1, stretches.size())) {
      isOver = isOver && end <= later.changed;
    }
    if (isOver) return end;
  }
}

}  // namespace io
