// nn/optimizer/schedule.h: how the learning rate changes while training.
#pragma once

#include <kj/memory.h>

#include "configs/language/reader.h"

namespace nn {

// How long a run is, in updates of a parameter.
struct RunLength {
  double updatesPerEpoch;  // may be fractional: records / images of a round
  uint64_t updates;        // of the whole run, at least 1

  // What so many epochs are in updates: rounded down, at least one.
  uint64_t updatesIn(double epochs) const;
};

// The learning rate's factor at a global update number (from 0). Immutable; any thread.
class Schedule {
public:
  virtual ~Schedule() noexcept(false) = default;
  // Bits that do not depend on the machine: nothing but IEEE 754's own operations is used.
  virtual double factor(uint64_t update, const RunLength& run) const = 0;
  // Updates of its warm-up, which may be more than the run has; 0 without.
  virtual uint64_t warmUp(const RunLength&) const { return 0; }
};

// [train.schedule]: a row of SCHEDULES ("constant", "cosine", …); constant if absent.
//
// A curve over a run of T updates is taken at u / T by update u (from 0): the first update gets
// the beginning of the curve, and its end at T is what an update after the last would get. So
// PyTorch's LambdaLR has it, stepped once after each update.
//
// A drop after n updates counts from update n on (MXNet's FactorScheduler drops when num_update >
// n, and its num_update of our update u is u + 1). Epochs become whole updates, rounded down, at
// least one.
//
// Every row has a warm-up (Goyal et al. 2017, arXiv 1706.02677, section 2.2): while u < n, of n =
// `warmup_steps`, the factor is also times from + (1 - from) · u / n; update n is the first
// without. The row goes on below as if there were none.
kj::Own<const Schedule> readSchedule(configs::Reader& reader, kj::StringPtr key);

// The same, but absent = null.
kj::Maybe<kj::Own<const Schedule>> maybeReadSchedule(
    configs::Reader& reader, kj::StringPtr key, kj::StringPtr doc);

}  // namespace nn
