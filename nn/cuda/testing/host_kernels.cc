#include "nn/cuda/testing/host_kernels.h"

#include <kj/array.h>
#include <string.h>

#include "nn/cuda/kernel_bodies.h"

namespace nn::cuda {
namespace {

struct HostRun {
  Order order;

  template <typename T, unsigned N, typename K>
  void operator()(const K& kernel, const Grid& grid) const {
    struct alignas(16) Line {
      unsigned char bytes[16];
    };
    auto shared = kj::heapArray<Line>((grid.shared_bytes + sizeof(Line) - 1) / sizeof(Line));
    for (uint32_t i = 0; i < grid.blocks; i++) {
      memset(shared.begin(), 0xff, shared.asBytes().size());  // NaNs: shared memory is not cleared
      uint32_t place = order == Order::ASCENDING ? i : grid.blocks - 1 - i;
      HostBlock block(place, grid, order, shared.begin());
      body<T, N>(kernel, block);
    }
  }
};

}  // namespace

void runOnHost(const Kernel& kernel, Order order) {
  choose(kernel, HostRun{order});
}

}  // namespace nn::cuda
