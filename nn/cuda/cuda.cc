#include "nn/cuda/cuda.h"

#include "configs/language/failure.h"
#include "nn/cuda/gpu_device.h"
#include "nn/cuda/group.h"
#include "nn/cuda/presence.h"
#include "nn/cuda/program.h"

namespace nn::cuda {

namespace {

kj::Own<Device> open(uint number) {
  KJ_IF_MAYBE(why, whyNot(presence(), number)) {
    configs::fail("device cuda:", number, ": ", *why, ". Choose \"cpu\"");
  }
  return newGpuDevice(number);
}

kj::Own<Program> lower(const Graph& graph, ProgramOptions options) {
  return newProgram(graph, open(options.device), options);
}

kj::Own<Program> lowerGroup(
    const Graph& graph, kj::ArrayPtr<const uint> numbers, ProgramOptions options) {
  auto devices = KJ_MAP(number, numbers) {
    return open(number);
  };
  return newGroup(graph, kj::mv(devices), options);
}

}  // namespace

constinit const Backend CUDA = {
    .name = "cuda",
    .doc = "NVIDIA's GPUs, by cuDNN, cuBLAS and kernels of our own.",
    .lower = lower,
    .lowerGroup = lowerGroup,
};

}  // namespace nn::cuda
