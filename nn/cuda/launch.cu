#include "nn/cuda/launch.h"

#include <cuda_runtime.h>

#include "nn/cuda/kernel_bodies.h"

namespace nn::cuda {
namespace {

// `kernel` is a constant of the grid. Therefore taking its address does not copy it.
template <typename T, unsigned N, typename K>
__global__ void __launch_bounds__(MOST_THREADS) perform(const __grid_constant__ K kernel) {
  DeviceBlock block;
  body<T, N>(kernel, block);
}

struct Launch {
  cudaStream_t stream;

  template <typename T, unsigned N, typename K>
  void operator()(const K& kernel, const Grid& grid) const {
    perform<T, N><<<grid.blocks, grid.threads, grid.shared_bytes, stream>>>(kernel);
  }
};

}  // namespace

void launch(const Kernel& kernel, void* stream) {
  choose(kernel, Launch{static_cast<cudaStream_t>(stream)});
}

}  // namespace nn::cuda
