#include "nn/cuda/cuda.h"

#include "configs/language/failure.h"
#include "nn/cuda/gpu_device.h"
#include "nn/cuda/presence.h"
#include "nn/cuda/program.h"

namespace nn::cuda {

namespace {

kj::Own<Program> lower(const Graph& graph, ProgramOptions options) {
  KJ_IF_MAYBE(why, whyNot(presence(), options.device)) {
    configs::fail("device cuda:", options.device, ": ", *why, "; choose \"cpu\"");
  }
  return newProgram(graph, newGpuDevice(options.device), options);
}

}  // namespace

constinit const Backend CUDA = {
    .name = "cuda",
    .doc = "NVIDIA's GPUs, by cuDNN, cuBLAS and kernels of our own.",
    .lower = lower,
};

}  // namespace nn::cuda
