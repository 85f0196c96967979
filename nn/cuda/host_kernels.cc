#include "nn/cuda/host_kernels.h"

#include <kj/array.h>
#include <string.h>

#include "nn/cuda/kernel_bodies.h"

namespace nn::cuda {
namespace {

struct HostRun {
  template <typename T, unsigned N, typename K>
  void operator()(const K& kernel, const Grid& grid) const {
    struct alignas(16) Line {
      unsigned char bytes[16];
    };
    auto shared = kj::heapArray<Line>((grid.shared_bytes + sizeof(Line) - 1) / sizeof(Line));
    for (uint32_t i = 0; i < grid.blocks; i++) {
      memset(shared.begin(), 0xff, shared.asBytes().size());  // NaNs: shared memory is not cleared
      HostBlock block(i, grid, shared.begin());
      body<T, N>(kernel, block);
    }
  }
};

}  // namespace

void runOnHost(const Kernel& kernel) {
  choose(kernel, HostRun());
}

}  // namespace nn::cuda
