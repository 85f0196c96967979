#include "nn/cpu/sgemm.h"

#include <dnnl.h>
#include <kj/debug.h>

namespace nn::cpu {

void multiply(size_t M, size_t N, size_t K, Matrix a, Matrix b, float beta, float* c, size_t ldc) {
  auto status = dnnl_sgemm(a.transposed, b.transposed, M, N, K, 1.0f, a.data, a.rowStride, b.data,
      b.rowStride, beta, c, ldc);
  KJ_ASSERT(status == dnnl_success, "oneDNN's sgemm failed", int(status));
}

}  // namespace nn::cpu
