#include "nn/cuda/presence.h"

#include <cuda_runtime.h>
#include <kj/vector.h>

#include "nn/cuda/libraries.h"

namespace nn::cuda {

namespace {

Presence none(kj::String why) { return {nullptr, kj::mv(why)}; }

// A version as CUDA counts it: 13000 is 13.0.
kj::String release(int version) { return kj::str(version / 1000, '.', version % 1000 / 10); }

// CUDA calls both a missing driver and an old one insufficient.
kj::String whyInsufficient() {
  int driver = 0, built = 0;
  if (cudaDriverGetVersion(&driver) != cudaSuccess || driver == 0) return kj::str("no driver");
  if (cudaRuntimeGetVersion(&built) != cudaSuccess) built = CUDART_VERSION;
  return kj::str(
      "the driver supports CUDA ", release(driver), ", but the program was built with ", release(built));
}

}  // namespace

Presence findGpus() {
  int count = 0;  // unchanged on error
  auto error = cudaGetDeviceCount(&count);
  if (error == cudaErrorInsufficientDriver) {
    return none(kj::str("no GPU found (", whyInsufficient(), ')'));
  } else if (error != cudaSuccess) {
    return none(kj::str("no GPU found (", cudaGetErrorString(error), ')'));
  } else if (count == 0) {
    return none(kj::str("no GPU found (the driver reports none)"));
  }
  KJ_IF_MAYBE(reason, loadLibraries()) return none(kj::mv(*reason));
  kj::Vector<Gpu> gpus;
  for (int i = 0; i < count; ++i) {
    cudaDeviceProp about;
    error = cudaGetDeviceProperties(&about, i);
    if (error != cudaSuccess) {
      return none(kj::str("cannot read the properties of cuda:", i, ": ", cudaGetErrorString(error)));
    }
    gpus.add(Gpu{kj::str(about.name), about.totalGlobalMem, uint(about.major), uint(about.minor)});
  }
  return {gpus.releaseAsArray(), nullptr};
}

}  // namespace nn::cuda
