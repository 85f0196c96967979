// nn/cuda/program.h: a graph on one GPU.
#pragma once

#include "nn/cuda/device.h"
#include "nn/program.h"

namespace nn::cuda {

// Makes a program that computes on `device`, and owns it. The flat arrays are on the host.
// forward(s) copies the parameters of segment s to the device, and backward(s) copies its gradients
// back. The host waits only for results that it reads. The work of each segment is recorded when
// the program is made, and replayed in each step.
//
// statistics() fetches the values of the device. The next forward(0) copies the array back.
//
// The program can train by itself. Then a whole step is one recording, and parameters are fetched
// and copied back as statistics are.
kj::Own<Program> newProgram(const Graph& graph, kj::Own<Device> device, ProgramOptions options);

// One of several programs that share a step. Its parameters come from elsewhere, and its gradients
// stay on the device.
class DeviceProgram: public Program {
public:
  // Does forward() with `all`, the parameters of all segments on the host, in place of
  // parameters(). They must stay unchanged until the work is done.
  virtual void forwardWith(Phase phase, uint segment, kj::ArrayPtr<const float> all) = 0;
  // Does backward() without copying the gradients to the host.
  virtual void backwardThere(uint segment) = 0;
  // The flat gradients, on the device.
  virtual float* gradientsThere() = 0;
};
kj::Own<DeviceProgram> newDeviceProgram(
    const Graph& graph, kj::Own<Device> device, ProgramOptions options);

}  // namespace nn::cuda
