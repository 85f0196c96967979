// runner/roles/job_members.h: which workers are members of a job, and how the membership has
// changed.
#pragma once

#include <kj/array.h>
#include <kj/string.h>
#include <kj/vector.h>

#include "io/batches/division.h"
#include "rpc/placement.h"
#include "runner/logs/job.capnp.h"

namespace runner {

using kj::uint;

// The workers of a job by rank. For one thread.
class JobMembers {
public:
  // At first, ranks 0 to workers - 1 are members. There may be `seats` at a time.
  JobMembers(uint workers, uint seats);

  bool has(uint rank) const { return isMember[rank]; }
  uint count() const { return members; }
  // Returns all changes of the members since the beginning of the run, in the order in which they
  // became known.
  kj::ArrayPtr<const io::MemberChange> changes() const { return all; }
  // Returns the step from which the present members divide the records, at the latest.
  uint64_t settledAt() const;

  // Whether a former member has pushed a part of step `step`, or of a later one.
  bool havePushed(uint64_t step) const;

  // Throws if the change does not fit the members.
  void add(io::MemberChange change);

private:
  kj::Array<bool> isMember;
  kj::Array<uint64_t> begins;  // the step of the last change, by rank
  uint members;
  kj::Vector<io::MemberChange> all;
};

// How far the pushes of a lost worker went.
struct LastPushes {
  // The first step that it has not pushed completely. kj::maxValue if there are no slices.
  uint64_t step;
  kj::Array<rpc::SliceId> held;  // the slices of its push of that step, in ascending order
};
// Returns how far the pushes of a worker went, from the servers' answers: `pushed` says how many
// steps the worker has pushed of each of the `slices` slices, in any order. Throws if the answers
// contradict each other or the protocol.
LastPushes lastPushesOf(kj::ArrayPtr<const SliceRun::Reader> pushed, uint64_t slices);

// Returns ascending numbers as text: "0-3,7".
kj::String rangesText(kj::ArrayPtr<const uint> numbers);
// Returns the slices of such a text. Null if it is wrong, or has a number that is too large for a
// slice.
kj::Maybe<kj::Array<uint>> parseRanges(kj::StringPtr text);

// Write a change to an event `membership`, with the slices that hold the push of a lost worker, and
// read the change of worker `rank` from such an event.
void setChange(Event::Membership::Builder event, const io::MemberChange& change,
    kj::ArrayPtr<const rpc::SliceId> held);
io::MemberChange changeOf(uint rank, Event::Membership::Reader event);
// Convert changes to messages and back.
void setChanges(
    capnp::List<MemberChange>::Builder target, kj::ArrayPtr<const io::MemberChange> changes);
kj::Array<io::MemberChange> changesOf(capnp::List<MemberChange>::Reader changes);

}  // namespace runner
