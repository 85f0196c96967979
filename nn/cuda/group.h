// nn/cuda/group.h: a graph on several GPUs of one machine.
#pragma once

#include "nn/cuda/device.h"
#include "nn/program.h"

namespace nn::cuda {

// Makes a program that divides its batch over `devices` as a DeviceGroup does (see
// nn/device_group.h), with the same sums. The first device adds the gradients, in the order of the
// devices, and copies the sum to the host. The calling thread queues the work of all devices.
// Ignores options.device.
kj::Own<Program> newGroup(
    const Graph& graph, kj::Array<kj::Own<Device>> devices, ProgramOptions options);

}  // namespace nn::cuda
