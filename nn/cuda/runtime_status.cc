#include "nn/cuda/runtime_status.h"

#include "configs/language/failure.h"
#include "nn/lost_device.h"

namespace nn::cuda {

namespace {

// Whether the GPU, its links or its driver have failed. An illegal address is a bug of a program,
// and would happen again.
bool isOfDevice(cudaError_t status) {
  switch (status) {
    case cudaErrorECCUncorrectable:
    case cudaErrorNvlinkUncorrectable:
    case cudaErrorHardwareStackError:
    case cudaErrorLaunchFailure:
    case cudaErrorLaunchTimeout:
    case cudaErrorExternalDevice:
    case cudaErrorContained:
    case cudaErrorUnknown:
      return true;
    default:
      return false;
  }
}

kj::StringPtr adviceOn(cudaError_t status) {
  if (status == cudaErrorMemoryAllocation) {
    return "; make data.batch_size smaller, or see in `nvidia-smi` what else uses the GPU"_kj;
  }
  return isOfDevice(status) ? "; see in `dmesg` what the driver says (Xid)"_kj : ""_kj;
}

}  // namespace

void check(cudaError_t status, kj::StringPtr what) {
  if (status == cudaSuccess) return;
  if (isOfDevice(status)) noteLostDevice();
  int number = -1;
  auto name = cudaGetDevice(&number) == cudaSuccess ? kj::str("cuda:", number) : kj::str("a GPU");
  configs::fail(name, " cannot ", what, ": ", cudaGetErrorName(status), ": ",
      cudaGetErrorString(status), adviceOn(status));
}

}  // namespace nn::cuda
