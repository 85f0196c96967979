// nn/cuda/device_updater.h: updates the flat arrays of a program on its device.
#pragma once

#include "nn/cuda/device.h"
#include "nn/optimizer/value_rules.h"

namespace nn::cuda {

// Arrays of a device.
struct UpdatedArrays {
  float* parameters;
  uint64_t parametersSize;
  const float* gradients;
  float* statistics;
  uint64_t statisticsSize;
};

// What the updates need beside the arrays: states, slow values, tables. An update is one launch;
// with a lookahead there is another for moving statistics. `device` and `rules` must outlive it.
class DeviceUpdater {
public:
  DeviceUpdater(Device& device, const ValueRules& rules, const UpdatedArrays& arrays);
  KJ_DISALLOW_COPY(DeviceUpdater);

  // Before update 0: the lookahead's slow values begin as these, which are the arrays'.
  void begin(kj::ArrayPtr<const float> parameters, kj::ArrayPtr<const float> statistics);
  // Before the work of update number `number`, which may be asked for later than it.
  void prepare(uint64_t number);
  // Asks for the work of the update that was prepared, or will be when it is replayed.
  void ask();

  uint64_t memory_bytes() const { return bytes; }

private:
  // Memory for `count` values; nothing for none.
  template <typename T>
  kj::Own<Memory> room(size_t count);

  Device& device;
  const ValueRules& rules;
  const UpdatedArrays arrays;
  uint64_t bytes = 0;
  uint32_t parameterPieces;
  uint32_t statisticsPieces;
  kj::Own<Memory> pieces;  // of parameters, then of statistics
  kj::Own<Memory> told;    // the rules of the next update
  kj::Own<Memory> toTell;  // the same on the host,
  kj::Own<Mark> wasTold;   // which may be written behind this
  kj::Own<Memory> states;
  kj::Own<Memory> slowParameters;
  kj::Own<Memory> slowStatistics;
};

}  // namespace nn::cuda
