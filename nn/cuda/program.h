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

}  // namespace nn::cuda
