// nn/schedule.h: how the learning rate changes while training.
#pragma once

#include <kj/memory.h>

#include "configs/language/reader.h"

namespace nn {

// The learning rate's factor at a global update number (from 0). Immutable; any thread.
class Schedule {
public:
  virtual ~Schedule() noexcept(false) = default;
  // `updatesPerEpoch` may be fractional: records / images of a round.
  virtual double factor(uint64_t update, double updatesPerEpoch) const = 0;
};

// [train.schedule]: a row of SCHEDULES ("constant", "factor", "step"); constant if absent.
//
// A drop after n updates counts from update n on (MXNet's FactorScheduler drops when num_update >
// n, and its num_update of our update u is u + 1). Epochs become whole updates, rounded down, at
// least one.
kj::Own<const Schedule> readSchedule(configs::Reader& reader, kj::StringPtr key);

}  // namespace nn
