#include "nn/cuda/libraries.h"

#include "nn/cuda/shared_library.h"

namespace nn::cuda {

// Defined by dl_stubs in BUILD. cuBLASLt is loaded first, because cuDNN uses it too.
extern const SharedLibrary CUBLASLT;
extern const SharedLibrary CUDNN;

namespace {

kj::Maybe<kj::String> loadAll() {
  auto surroundings = Surroundings::ofProcess();
  for (auto library: {&CUBLASLT, &CUDNN}) {
    KJ_IF_MAYBE(reason, load(*library, placesOf(library->soname, surroundings))) {
      return kj::mv(*reason);
    }
  }
  return nullptr;
}

}  // namespace

kj::Maybe<kj::String> loadLibraries() {
  static const kj::Maybe<kj::String> OUTCOME = loadAll();
  return OUTCOME.map([](const kj::String& reason) { return kj::str(reason); });
}

}  // namespace nn::cuda
