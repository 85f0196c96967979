#include "runner/roles/job_members.h"

#include <kj/debug.h>

#include <algorithm>

namespace runner {

JobMembers::JobMembers(uint workers, uint seats)
    : isMember(kj::heapArray<bool>(seats)),
      begins(kj::heapArray<uint64_t>(seats)),
      members(workers) {
  for (uint rank = 0; rank < seats; rank++) {
    isMember[rank] = rank < workers;
    begins[rank] = 0;
  }
}

uint64_t JobMembers::settledAt() const {
  uint64_t step = 0;
  for (auto& change: all) step = kj::max(step, change.first());
  return step;
}

bool JobMembers::havePushed(uint64_t step) const {
  for (auto& change: all) {
    if (!change.joins && change.step + (change.counts ? 1 : 0) > step) return true;
  }
  return false;
}

void JobMembers::add(io::MemberChange change) {
  KJ_REQUIRE(change.rank < isMember.size(), "the job has no such worker", change.rank);
  KJ_REQUIRE(isMember[change.rank] != change.joins, "a worker joins or leaves twice", change.rank);
  KJ_REQUIRE(change.step >= begins[change.rank], "a worker changes before it was a member",
      change.rank, change.step);
  begins[change.rank] = change.step;
  isMember[change.rank] = change.joins;
  members += change.joins ? 1 : -1;
  all.add(change);
}

LastPushes lastPushesOf(kj::ArrayPtr<const SliceRun::Reader> pushed, uint64_t slices) {
  uint64_t step = kj::maxValue, named = 0;
  for (auto& run: pushed) {
    step = kj::min(step, run.getSteps());
    named += run.getEnd() - kj::min(run.getBegin(), run.getEnd());
    KJ_REQUIRE(run.getEnd() <= slices && named <= slices, "servers name more slices than there are",
        run.getEnd(), named, slices);
  }
  kj::Vector<rpc::SliceId> held;
  for (auto& run: pushed) {
    if (run.getSteps() == step) continue;
    // A worker begins a step only after all its pushes of the previous step were answered.
    KJ_REQUIRE(run.getSteps() == step + 1, "a worker pushed two steps at once", run.getSteps());
    for (auto id = run.getBegin(); id < run.getEnd(); id++) held.add(id);
  }
  std::sort(held.begin(), held.end());
  KJ_REQUIRE(std::adjacent_find(held.begin(), held.end()) == held.end(),
      "two servers name the same slice");
  return {step, held.releaseAsArray()};
}

kj::String rangesText(kj::ArrayPtr<const uint> numbers) {
  kj::Vector<kj::String> ranges;
  for (size_t begin = 0; begin < numbers.size();) {
    size_t end = begin + 1;
    while (end < numbers.size() && numbers[end] == numbers[end - 1] + 1) end++;
    ranges.add(end - begin == 1 ? kj::str(numbers[begin])
                                : kj::str(numbers[begin], '-', numbers[end - 1]));
    begin = end;
  }
  return kj::strArray(ranges, ",");
}

// 16 million slices have at least 64 GiB, except in a small model, which has few slices. A damaged
// text must not take much memory.
constexpr uint SLICE_MAX = kj::maxValueForBits<24>();

kj::Maybe<kj::Array<uint>> parseRanges(kj::StringPtr text) {
  kj::Vector<uint> numbers;
  uint64_t number = 0, first = 0;
  bool hasDigit = false, isRange = false;
  for (char c: kj::str(text, text.size() > 0 ? "," : "")) {
    if (c >= '0' && c <= '9') {
      number = number * 10 + (c - '0');
      if (number > SLICE_MAX) return nullptr;
      hasDigit = true;
      continue;
    }
    if (!hasDigit) return nullptr;
    if (c == '-' && !isRange) {
      first = number;
      isRange = true;
    } else if (c == ',') {
      if (!isRange) first = number;
      if (number < first || (!numbers.empty() && first <= numbers.back())) return nullptr;
      for (uint64_t n = first; n <= number; n++) numbers.add(n);
      isRange = false;
    } else {
      return nullptr;
    }
    number = 0;
    hasDigit = false;
  }
  return numbers.releaseAsArray();
}

void setChange(Event::Membership::Builder event, const io::MemberChange& change,
    kj::ArrayPtr<const rpc::SliceId> held) {
  event.setJoined(change.joins);
  event.setStep(change.step);
  event.setHeld(rangesText(held));
  event.setFrom(change.from);
}

io::MemberChange changeOf(uint rank, Event::Membership::Reader event) {
  return {.rank = rank,
      .joins = event.getJoined(),
      .step = event.getStep(),
      .counts = event.getHeld().size() > 0,
      .from = event.getFrom()};
}

void setChanges(
    capnp::List<MemberChange>::Builder target, kj::ArrayPtr<const io::MemberChange> changes) {
  for (auto i: kj::indices(changes)) {
    auto& from = changes[i];
    target[i].setRank(from.rank);
    target[i].setJoins(from.joins);
    target[i].setStep(from.step);
    target[i].setCounts(from.counts);
    target[i].setFrom(from.from);
  }
}

kj::Array<io::MemberChange> changesOf(capnp::List<MemberChange>::Reader changes) {
  return KJ_MAP(from, changes) {
    return io::MemberChange{.rank = from.getRank(),
        .joins = from.getJoins(),
        .step = from.getStep(),
        .counts = from.getCounts(),
        .from = from.getFrom()};
  };
}

}  // namespace runner
