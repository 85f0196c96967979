// nn/cuda/kernel_bodies.h: what the kernels of kernels.h do, and the choice of how.
//
// For each there are a body, one block's work, over its element T and its pack of N channels;
// gridOf(); and, for those that can move packs, takesPacks().
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

// Calls run.operator()<T, N>(the kernel's arguments, Grid) with the T and N to take body() of.
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
