#include "nn/cuda/presence.h"

namespace nn::cuda {

Presence findGpus() {
  return {nullptr, kj::str("this program was built without CUDA")};
}

}  // namespace nn::cuda
