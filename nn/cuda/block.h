// nn/cuda/block.h: how kernels are written so that they also run on a host. A body is the code of
// one block of threads, in steps with a barrier after each step.
#pragma once

#include "nn/cuda/element.h"

namespace nn::cuda {

// How a kernel is launched. The threads of a block share memory, which is not zeroed.
struct Grid {
  uint32_t blocks;
  uint32_t threads;  // of a block
  uint32_t shared_bytes = 0;
};

// A body is a function template over its block:
//
//   template <typename Block> HOST_DEVICE void body(const SumRows& k, Block& block) {
//     auto sums = block.template shared<double>();
//     block.each([&](uint32_t thread) { sums[thread] = …; });
//     block.each([&](uint32_t thread) { if (thread == 0) …; });
//   }
//
// each() runs its step for every thread of the block, then waits for all of them. A step may read
// what earlier steps left in shared memory, and nothing else of theirs.
#ifdef __CUDACC__
class DeviceBlock {
public:
  __device__ uint32_t index() const { return blockIdx.x; }
  __device__ uint32_t blocks() const { return gridDim.x; }
  __device__ uint32_t threads() const { return blockDim.x; }
  template <typename T>
  __device__ T* shared() const {
    extern __shared__ __align__(16) unsigned char memory[];
    return reinterpret_cast<T*>(memory);
  }
  template <typename Step>
  __device__ void each(Step&& step) const {
    step(threadIdx.x);
    __syncthreads();
  }
};
#endif

// The order in which a host runs blocks, and the threads of a block. A kernel is wrong if its
// result depends on the order.
enum class Order : uint8_t { ASCENDING, DESCENDING };

// The block of a kernel that runs on a host.
class HostBlock {
public:
  HostBlock(uint32_t index, const Grid& grid, Order order, void* memory)
      : place(index), grid(grid), order(order), memory(memory) {}

  uint32_t index() const { return place; }
  uint32_t blocks() const { return grid.blocks; }
  uint32_t threads() const { return grid.threads; }
  template <typename T>
  T* shared() const {
    return static_cast<T*>(memory);
  }
  template <typename Step>
  void each(Step&& step) const {
    for (uint32_t i = 0; i < grid.threads; i++) {
      step(order == Order::ASCENDING ? i : grid.threads - 1 - i);
    }
  }

private:
  uint32_t place;
  const Grid& grid;
  Order order;
  void* memory;
};

}  // namespace nn::cuda
