// nn/cuda/group.h: a graph on several GPUs of one machine.
#pragma once

#include "nn/cuda/device.h"
#include "nn/program.h"

namespace nn::cuda {

// A program whose rows are dealt over `devices` as those of a DeviceGroup are (see
// nn/device_group.h), with the same sums: but gradients are added on the first device, in the order
// of devices, and leave it once. No device has a thread: all are asked by the caller's.
// options.device is not looked at.
kj::Own<Program> newGroup(
    const Graph& graph, kj::Array<kj::Own<Device>> devices, ProgramOptions options);

}  // namespace nn::cuda
