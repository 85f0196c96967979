// nn/cuda/kernel_bodies.h: the code of the kernels in kernels.h, and how each is launched.
//
// Each kernel has a body(), which is the work of one block. It is a template over the element T and
// the number N of channels in a pack. gridOf() says how the kernel is launched. takesPacks() says
// whether a kernel can move packs of several channels. For a kernel that has views(), packs.h has
// both.
#pragma once

#include "nn/cuda/kernel_bodies_copies.h"
#include "nn/cuda/kernel_bodies_elements.h"
#include "nn/cuda/kernel_bodies_loss.h"
#include "nn/cuda/kernel_bodies_norm.h"
#include "nn/cuda/kernel_bodies_pools.h"
#include "nn/cuda/kernel_bodies_update.h"

namespace nn::cuda {

template <typename T, typename K, typename Run>
void choosePack(const K& kernel, Run& run) {
  if constexpr (requires { takesPacks(kernel); }) {
    constexpr unsigned PACK = 16 / sizeof(T);
    if (takesPacks(kernel)) {
      return run.template operator()<T, PACK>(kernel, gridOf(kernel, PACK));
    }
  }
  run.template operator()<T, 1>(kernel, gridOf(kernel, 1));
}

// Calls run.operator()<T, N>(the arguments of the kernel, Grid) with the T and N for its body().
template <typename Run>
void choose(const Kernel& kernel, Run&& run) {
  std::visit(
      [&](const auto& k) {
        if constexpr (requires { k.element; }) {
          switch (k.element) {
            case Element::FLOAT32:
              return choosePack<float>(k, run);
            case Element::BFLOAT16:
              return choosePack<Bfloat16>(k, run);
            case Element::FLOAT16:
              return choosePack<Float16>(k, run);
          }
        } else {
          choosePack<float>(k, run);
        }
      },
      kernel);
}

}  // namespace nn::cuda
