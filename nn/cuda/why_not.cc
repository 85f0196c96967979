#include "nn/cuda/presence.h"

namespace nn::cuda {

// What tools/bazel/cuda_rules.bzl compiles for.
constexpr uint LEAST_MAJOR = 9;

kj::Maybe<kj::String> whyNot(const Presence& presence, uint index) {
  if (presence.gpus.size() == 0) return kj::str(presence.whyNone);
  if (index >= presence.gpus.size()) {
    return kj::str("the last GPU that this process may use is cuda:", presence.gpus.size() - 1);
  }
  auto& gpu = presence.gpus[index];
  if (gpu.major < LEAST_MAJOR) {
    return kj::str(gpu.name, " has compute capability ", gpu.major, '.', gpu.minor,
        ", and the program needs ", LEAST_MAJOR, ".0");
  }
  return nullptr;
}

}  // namespace nn::cuda
