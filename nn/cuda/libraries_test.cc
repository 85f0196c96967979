#include "nn/cuda/libraries.h"

#include <cublasLt.h>
#include <cudnn.h>
#include <doctest/doctest.h>
#include <kj/debug.h>

#include "tests/skip.h"

namespace nn::cuda {
namespace {

TEST_CASE("Libraries: the loaded libraries have the versions of the headers, and answer") {
  KJ_IF_MAYBE(reason, loadLibraries()) SKIP_CASE(reason->cStr());
  CHECK(cudnnGetVersion() / 10000 == CUDNN_MAJOR);
  CHECK(cublasLtGetVersion() / 10000 == CUBLAS_VER_MAJOR);
  CHECK(kj::StringPtr(cublasLtGetStatusString(CUBLAS_STATUS_SUCCESS)).size() > 0);

  // Needs no GPU.
  cudnnBackendDescriptor_t descriptor = nullptr;
  REQUIRE(cudnnBackendCreateDescriptor(CUDNN_BACKEND_TENSOR_DESCRIPTOR, &descriptor) ==
          CUDNN_STATUS_SUCCESS);
  CHECK(cudnnBackendFinalize(descriptor) != CUDNN_STATUS_SUCCESS);  // it has no shape
  CHECK(cudnnBackendDestroyDescriptor(descriptor) == CUDNN_STATUS_SUCCESS);
}

}  // namespace
}  // namespace nn::cuda
