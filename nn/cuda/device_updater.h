// nn/cuda/device_updater.h: updates the flat arrays of a program on its device.
#pragma once

#include "configs/language/state_visitor.h"
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

// Holds the data that updates need beside the arrays: states, slow values and tables. An update is
// one launch of a kernel. A lookahead adds a second launch, for moving statistics. `device` and
// `rules` must outlive it.
class DeviceUpdater {
public:
  DeviceUpdater(Device& device, const ValueRules& rules, const UpdatedArrays& arrays);
  KJ_DISALLOW_COPY(DeviceUpdater);

  // To be called before update 0, with the values of the arrays. The lookahead's slow values begin
  // as these.
  void begin(kj::ArrayPtr<const float> parameters, kj::ArrayPtr<const float> statistics);
  // Sets the rules of update number `number`. Call it before the device does the work of that
  // update. ask() may come before or after this call.
  void prepare(uint64_t number);
  // Queues the work of an update. The update is the one that was prepared last when the device does
  // the work.
  void ask();

  // Visits the states and slow values, to save and to restore them. Waits for the work.
  void visitState(configs::StateVisitor& visitor);

  uint64_t memory_bytes() const { return bytes; }

private:
  // Returns memory for `count` values, and counts its bytes. It has no bytes if `count` is 0.
  template <typename T>
  kj::Own<Memory> room(size_t count);
  void visit(
      configs::StateVisitor& visitor, kj::StringPtr name, kj::Own<Memory>& memory, size_t count);

  Device& device;
  const ValueRules& rules;
  const UpdatedArrays arrays;
  uint64_t bytes = 0;
  uint32_t parameterPieces;
  uint32_t statisticsPieces;
  kj::Own<Memory> pieces;  // of parameters, then of statistics
  kj::Own<Memory> told;    // the rules of the next update
  kj::Own<Memory> toTell;  // the same on the host
  kj::Own<Mark> wasTold;   // after this mark, `toTell` may be overwritten
  kj::Own<Memory> states;
  kj::Own<Memory> slowParameters;
  kj::Own<Memory> slowStatistics;
};

}  // namespace nn::cuda
