// runner/roles/member_plan.h: repeats the changes of another run's members.
#pragma once

#include <kj/array.h>
#include <kj/string.h>
#include <kj/vector.h>

#include "rpc/placement.h"
#include "runner/logs/run_folder.h"

namespace runner {

using kj::uint;

// Throws, for the user, if the run in `folder` had a worker `rank` that is not below `seats`.
void requireSeat(const RunFolder& folder, uint rank, uint seats);

// Which workers a run has lost and which have joined, according to its events. Immutable.
class MemberPlan {
public:
  // A worker that was lost, or has left.
  struct Loss {
    uint rank;
    uint epoch;                      // in which the worker was lost
    uint64_t step;                   // the first step that it has not pushed completely
    kj::Array<rpc::SliceId> slices;  // that have its push of that step
    bool left;                       // on purpose
  };

  // Reads the run in `folder`. Throws if it has no events, or a wrong one, or a worker whose rank
  // is not below `seats`.
  MemberPlan(const RunFolder& folder, uint seats);

  // Returns how many losses and joins a run of `epochs` epochs repeats: those in its epochs. A loss
  // after its last epoch does not count, because the worker had made all its steps.
  size_t changes(uint epochs) const;
  // Returns how many ranks the run had, if it began with `workers`.
  uint seats(uint workers) const;
  // Returns the first loss of worker `rank` at `step` or later. Null if it is not lost again.
  kj::Maybe<const Loss&> lossOf(uint rank, uint64_t step) const;
  // Returns the ranks of the workers whose first step is `step`.
  kj::Array<uint> joiningAt(uint64_t step) const;

private:
  struct Join {
    uint rank;
    uint epoch;
    uint64_t step;
  };
  kj::Vector<Loss> losses;
  kj::Vector<Join> joins;
};

}  // namespace runner
