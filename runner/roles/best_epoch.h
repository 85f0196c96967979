// runner/roles/best_epoch.h: which epoch of a run was the best one so far.
#pragma once

#include <kj/common.h>

#include "configs/language/state_visitor.h"
#include "nn/program.h"

namespace runner {

using kj::uint;

// All workers are shown the same figures, and know the same best epoch.
struct BestEpoch {
  uint epoch = 0;  // from 1. 0: no epoch was validated yet
  double accuracy = 0;

  // Takes the sums of an epoch's validation over all workers. Returns whether the epoch is better
  // than all before it. An epoch that is only as good is not.
  bool take(uint epoch, const nn::BatchResult& validated);
  // Shows all of it, to save and to restore it.
  void visitState(configs::StateVisitor& visitor);
};

}  // namespace runner
