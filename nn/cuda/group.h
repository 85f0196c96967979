// nn/cuda/group.h: a graph on several GPUs of one machine.
#pragma once

#include "nn/cuda/device.h"
#include "nn/program.h"

namespace nn::cuda {

// Makes a program whose rows are dealt over `devices` as in a DeviceGroup (see nn/device_group.h),
// with the same sums. The first device adds the gradients, in the order of the devices, and copies
// the sum to the host. The calling thread asks all devices for their work. Ignores options.device.
kj::Own<Program> newGroup(
    const Graph& graph, kj::Array<kj::Own<Device>> devices, ProgramOptions options);

}  // namespace nn::cuda
