// runner/roles/best_epoch.h: which epoch of a run was the best one so far.
#pragma once

#include <kj/common.h>

#include "configs/language/state_visitor.h"
#include "nn/program.h"

namespace runner {

using kj::uint;

// All workers receive the same figures, and so agree on the best epoch.
struct BestEpoch {
  uint epoch = 0;  // from 1. 0: no epoch was validated yet
  double accuracy = 0;

  // Takes the sums of an epoch's validation over all workers. Returns whether the epoch is better
  // than all before it. A tie does not count as better.
  bool take(uint epoch, const nn::BatchResult& validated);
  // Visits all members, to save and to restore them.
  void visitState(configs::StateVisitor& visitor);
};

}  // namespace runner
