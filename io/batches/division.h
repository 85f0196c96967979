// io/batches/division.h: how the members of a job divide the stream of records, while workers leave
// and join.
#pragma once

#include <kj/array.h>
#include <kj/common.h>
#include <kj/vector.h>

#include <cstdint>

namespace io {

using kj::uint;

// A worker leaves or joins.
struct MemberChange {
  uint rank;
  bool joins;
  // For a worker that joins: its first step. For a lost worker: the first step that it has not
  // pushed completely.
  uint64_t step;
  // For a lost worker: whether a part of its push of `step` counts.
  bool counts = false;
  // In modes where nobody waits for a lost worker's pushes: the first step after the epoch of the
  // loss. Otherwise 0: the others wait, so they have begun at most `step` and the step after it.
  uint64_t from = 0;

  // Returns the step from which the new members divide the records, at the latest. Workers finish
  // the steps that they have begun with the former division. At the end of an epoch, Division may
  // change one step earlier: there, every worker waits for the answers to all its pushes before its
  // next step, so it knows of all losses in the last step.
  uint64_t first() const { return joins ? step : from > 0 ? from : step + 2; }

  bool operator==(const MemberChange&) const = default;
};

// Where a job begins to divide records. All 0: at the beginning of the run. Otherwise the job
// continues from the end of an epoch, before which it had another number of workers.
struct DivisionStart {
  uint64_t epoch = 0;    // completed epochs
  uint64_t step = 0;     // steps that each worker has made
  uint64_t records = 0;  // records of the stream that were used
};

// Which records of the stream each worker reads in each step, and where epochs end. Without a
// change of the members, step t takes the next W·b records, and worker r the r-th b of these. From
// a change on, the new members divide the remaining records in the same way, in the order of their
// ranks. If a lost worker's batch of a step did not count, its records go back to the stream, and
// the new members read them first. So every record is read once per pass. Immutable.
class Division {
public:
  // `records` is the number that a pass reads. The changes come in the order in which they became
  // known. Changes of one step may come in any order, unless nobody waits for lost workers. None is
  // before `start`.
  Division(uint64_t records, uint batchSize, uint workers,
      kj::ArrayPtr<const MemberChange> changes = nullptr, DivisionStart start = {});

  // Returns in `out`, which has batchSize entries, the places in the stream of the records that
  // worker `rank` reads in step `step`. Throws if it is not a member in that step.
  void places(uint64_t step, uint rank, kj::ArrayPtr<uint64_t> out) const;

  // Returns how many steps a worker makes until the end of epoch `epoch` (from 1): as many as take
  // no more than the records of `epoch` passes. Records that went back do not count as taken. The
  // loss of a worker that has pushed all steps of an epoch does not move the end of that epoch.
  // Returns DivisionStart::step for epochs that were over at the start.
  uint64_t stepsUntilEndOf(uint64_t epoch) const;

  // Returns the first step after `step` from which other members divide the records. kj::maxValue
  // if none is known.
  uint64_t nextChangeAfter(uint64_t step) const;

  // Returns the ranks of the members of step `step`, in their order.
  kj::ArrayPtr<const uint> membersAt(uint64_t step) const;

private:
  // Consecutive places in the stream.
  struct Range {
    uint64_t begin;
    uint64_t size;
  };
  // The steps from one change to the next. In them, workers first read the records that went back,
  // and then the stream from `rest` on.
  struct Stretch {
    uint64_t changed;   // the step of the change
    bool isLoss;        // that the other workers wait for
    uint64_t begin;     // the first step
    uint64_t consumed;  // records that the steps before have used
    kj::Vector<Range> returned;
    uint64_t rest;
    kj::Vector<uint> members;

    uint64_t perStep(uint batchSize) const { return uint64_t(members.size()) * batchSize; }
  };

  const Stretch& stretchAt(uint64_t step) const;
  // Returns where `rank`'s batch of `step` begins among the records that the stretch reads. Null if
  // `rank` is not a member.
  kj::Maybe<uint64_t> offsetOf(const Stretch& stretch, uint64_t step, uint rank) const;
  // Adds the places of `size` records, from `offset` on among those that the stretch reads, to
  // `out`.
  static void add(const Stretch& stretch, uint64_t offset, uint64_t size, kj::Vector<Range>& out);
  // Returns the first step that is divided among the new members. By then they know of all changes
  // in earlier steps. The result is the same for all losses of one step.
  uint64_t firstOf(const MemberChange& change) const;
  void addStretch(const MemberChange& change);

  uint64_t records;
  uint batchSize;
  DivisionStart start;
  kj::Vector<Stretch> stretches;
};

}  // namespace io
