// nn/optimizer/schedule.h: how the learning rate changes during a run.
#pragma once

#include <kj/memory.h>

#include "configs/language/reader.h"

namespace nn {

// How long a run is, in updates of a parameter.
struct RunLength {
  double updatesPerEpoch;  // may be fractional: records / images of a round
  uint64_t updates;        // of the whole run, at least 1
  // The place of an update in the run is its number plus `ahead`. `ahead` is 0 unless the run had
  // another number of updates per epoch before. `updatesPerEpoch` and `updates` are computed as if
  // the present number had held from the beginning.
  int64_t ahead = 0;

  // Returns the place of update number `update`, by the count of all updates. Schedules and
  // lookaheads use places.
  uint64_t placeOf(uint64_t update) const { return update + uint64_t(ahead); }

  // Returns the updates of `epochs` epochs, rounded down, at least one.
  uint64_t updatesIn(double epochs) const;
};

// The factor of the learning rate at each update, counted from 0. Immutable; any thread.
class Schedule {
public:
  virtual ~Schedule() noexcept(false) = default;
  // Returns the same bits on every machine: it uses only operations that IEEE 754 defines.
  virtual double factor(uint64_t update, const RunLength& run) const = 0;
  // Returns the updates of the warm-up, which may be more than the run has. 0 without a warm-up.
  virtual uint64_t warmUp(const RunLength&) const { return 0; }
};

// [train.schedule]: a row of SCHEDULES ("constant", "cosine", …); constant if absent.
//
// A curve over a run of T updates is evaluated at u / T for update u, counted from 0. So the first
// update gets the beginning of the curve, and an update after the last one would get its end. This
// is what PyTorch's LambdaLR does if it is stepped once after each update.
//
// A drop after n updates counts from update n on. (MXNet's FactorScheduler drops when num_update >
// n, and its num_update is u + 1 for update u.) Epochs become whole updates, rounded down, at least
// one.
//
// Every row may have a warm-up (Goyal et al. 2017, arXiv 1706.02677, section 2.2). With n =
// `warmup_steps`, the factor of each update u < n is multiplied by from + (1 - from) · u / n. The
// row itself is not affected by the warm-up.
kj::Own<const Schedule> readSchedule(configs::Reader& reader, kj::StringPtr key);

// Does the same, but returns null if it is absent.
kj::Maybe<kj::Own<const Schedule>> maybeReadSchedule(
    configs::Reader& reader, kj::StringPtr key, kj::StringPtr doc);

}  // namespace nn
