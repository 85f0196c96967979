#include "nn/cuda/presence.h"

namespace nn::cuda {

const Presence& presence() {
  static const Presence NONE = {nullptr, kj::str("this program was built without CUDA")};
  return NONE;
}

}  // namespace nn::cuda
