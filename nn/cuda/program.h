// nn/cuda/program.h: a graph on one GPU.
#pragma once

#include "nn/cuda/device.h"
#include "nn/program.h"

namespace nn::cuda {

// A program whose work is done by `device`, which it owns. Its flat arrays are the host's:
// forward(s) brings the parameters of segment s to the device, backward(s) its gradients back. The
// host waits only for what it asks for. The work of each segment is recorded when the program is
// made, and replayed.
//
// statistics() fetches the device's; what the array holds at the next forward(0) goes back.
//
// It can train by itself: then all of a step is one recording, and parameters are fetched and go
// back as statistics do.
kj::Own<Program> newProgram(const Graph& graph, kj::Own<Device> device, ProgramOptions options);

// The same as one of several that share a step: parameters come from elsewhere, gradients stay.
class DeviceProgram: public Program {
public:
  // forward() with `all` parameters of the host's, for whom parameters() are. They must stay
  // unchanged until the work is done.
  virtual void forwardWith(Phase phase, uint segment, kj::ArrayPtr<const float> all) = 0;
  // backward() without bringing the gradients to the host.
  virtual void backwardThere(uint segment) = 0;
  // The flat gradients, on the device.
  virtual float* gradientsThere() = 0;
};
kj::Own<DeviceProgram> newDeviceProgram(
    const Graph& graph, kj::Own<Device> device, ProgramOptions options);

}  // namespace nn::cuda
