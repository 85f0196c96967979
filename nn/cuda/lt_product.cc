#include "nn/cuda/lt_product.h"

#include <kj/debug.h>
#include <kj/encoding.h>
#include <kj/vector.h>
#include <string.h>

#include "nn/cuda/handles.h"

namespace nn::cuda {

namespace {

constexpr auto NAME_START = "cublaslt "_kj;

kj::Maybe<kj::String> refusal(cublasStatus_t status, kj::StringPtr what) {
  if (status == CUBLAS_STATUS_SUCCESS) return nullptr;
  return kj::str("cuBLASLt cannot ", what, ": ", cublasLtGetStatusString(status));
}

void require(cublasStatus_t status, kj::StringPtr what) {
  KJ_IF_MAYBE(reason, refusal(status, what)) KJ_FAIL_REQUIRE(*reason);
}

// Owners of cuBLASLt's descriptors.
template <typename T, cublasStatus_t (*destroy)(T)>
class Owner {
public:
  Owner() = default;
  ~Owner() noexcept {
    if (value != nullptr) destroy(value);
  }
  KJ_DISALLOW_COPY(Owner);
  T value = nullptr;
};
using Operation = Owner<cublasLtMatmulDesc_t, cublasLtMatmulDescDestroy>;
using Layout = Owner<cublasLtMatrixLayout_t, cublasLtMatrixLayoutDestroy>;
using Preference = Owner<cublasLtMatmulPreference_t, cublasLtMatmulPreferenceDestroy>;

cudaDataType_t typeOf(Element element) {
  switch (element) {
    case Element::FLOAT32:
      return CUDA_R_32F;
    case Element::BFLOAT16:
      return CUDA_R_16BF;
    case Element::FLOAT16:
      return CUDA_R_16F;
  }
  KJ_UNREACHABLE;
}

// The description of a product for cuBLASLt.
struct Description {
  Product product;
  Operation operation;
  Layout a, b, c;

  Description(const Product& product, const ConvolutionProblem& shape, Direction direction)
      : product(product) {
    auto& p = product;
    auto output = direction == Direction::FORWARD ? shape.output : shape.element;
    auto compute = shape.element == Element::FLOAT32 && shape.tensorFloats
                       ? CUBLAS_COMPUTE_32F_FAST_TF32
                       : CUBLAS_COMPUTE_32F;
    require(cublasLtMatmulDescCreate(&operation.value, compute, CUDA_R_32F), "describe a product");
    setTransposed(CUBLASLT_MATMUL_DESC_TRANSA, p.transposesA);
    setTransposed(CUBLASLT_MATMUL_DESC_TRANSB, p.transposesB);
    // The sizes in memory, before the matrices are transposed.
    set(a, shape.element, p.transposesA ? p.k : p.m, p.transposesA ? p.m : p.k, p.lda);
    set(b, shape.element, p.transposesB ? p.n : p.k, p.transposesB ? p.k : p.n, p.ldb);
    set(c, output, p.m, p.n, p.ldc);
  }

private:
  void setTransposed(cublasLtMatmulDescAttributes_t which, bool transposes) {
    cublasOperation_t word = transposes ? CUBLAS_OP_T : CUBLAS_OP_N;
    require(cublasLtMatmulDescSetAttribute(operation.value, which, &word, sizeof(word)),
        "describe a product");
  }
  static void set(Layout& layout, Element element, uint64_t rows, uint64_t columns, int64_t ld) {
    require(cublasLtMatrixLayoutCreate(&layout.value, typeOf(element), rows, columns, ld),
        "describe a matrix");
  }
};

class LtPlan final: public LibraryPlan {
public:
  LtPlan(kj::Own<Description> description, const cublasLtMatmulHeuristicResult_t& found)
      : description(kj::mv(description)),
        algorithm(found.algo),
        workspaceSize_bytes(found.workspaceSize),
        nameText(kj::str(NAME_START,
            kj::encodeHex(
                kj::arrayPtr(reinterpret_cast<const byte*>(&algorithm), sizeof(algorithm))))) {}

  // An algorithm is plain data. According to the header of cuBLASLt, the same version accepts it
  // again.
  kj::StringPtr name() const override { return nameText; }
  size_t workspace_bytes() const override { return workspaceSize_bytes; }

  kj::Maybe<kj::String> run(
      const Handles& handles, const void* a, const void* b, void* c, void* workspace) override {
    auto& d = *description;
    const float one = 1, zero = 0;
    bool swaps = d.product.swaps;
    return refusal(cublasLtMatmul(handles.cublasLt, d.operation.value, &one, swaps ? b : a,
                       d.a.value, swaps ? a : b, d.b.value, &zero, c, d.c.value, c, d.c.value,
                       &algorithm, workspace, workspaceSize_bytes, handles.stream),
        "multiply");
  }

private:
  kj::Own<Description> description;
  cublasLtMatmulAlgo_t algorithm;
  size_t workspaceSize_bytes;
  kj::String nameText;
};

void prefer(Preference& preference, size_t workspaceMax_bytes) {
  require(cublasLtMatmulPreferenceCreate(&preference.value), "state a preference");
  auto set = [&](cublasLtMatmulPreferenceAttributes_t what, auto value) {
    require(cublasLtMatmulPreferenceSetAttribute(preference.value, what, &value, sizeof(value)),
        "state a preference");
  };
  set(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, uint64_t(workspaceMax_bytes));
  // Partial sums must not be added in the output, whose values may be halves.
  set(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, uint32_t(CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE));
  // Parts of concatenated channels may begin at any pack. By default cuBLASLt assumes 256 bytes.
  for (auto which:
      {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
          CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES}) {
    set(which, uint32_t(16));
  }
}

}  // namespace

kj::Array<kj::Own<LibraryPlan>> ltPlans(cublasLtContext* cublasLt, const ConvolutionProblem& shape,
    Direction direction, size_t workspaceMax_bytes, uint most) {
  kj::Vector<kj::Own<LibraryPlan>> plans;
  KJ_IF_MAYBE(product, productOf(shape, direction)) {
    Description d(*product, shape, direction);
    Preference preference;
    prefer(preference, workspaceMax_bytes);
    auto results = kj::heapArray<cublasLtMatmulHeuristicResult_t>(most);
    int count = 0;
    auto status = cublasLtMatmulAlgoGetHeuristic(cublasLt, d.operation.value, d.a.value, d.b.value,
        d.c.value, d.c.value, preference.value, int(most), results.begin(), &count);
    if (status == CUBLAS_STATUS_NOT_SUPPORTED)
      count = 0;
    else
      require(status, "look for ways to multiply");
    for (auto& result: results.slice(0, count)) {
      if (result.state != CUBLAS_STATUS_SUCCESS) continue;
      plans.add(kj::heap<LtPlan>(kj::heap<Description>(*product, shape, direction), result));
    }
  }
  return plans.releaseAsArray();
}

kj::Maybe<kj::Own<LibraryPlan>> ltPlanNamed(cublasLtContext* cublasLt,
    const ConvolutionProblem& shape, Direction direction, kj::StringPtr name) {
  if (!name.startsWith(NAME_START)) return nullptr;
  auto bytes = kj::decodeHex(name.slice(NAME_START.size()).asArray());
  cublasLtMatmulHeuristicResult_t result = {};
  if (bytes.hadErrors || bytes.size() != sizeof(result.algo)) return nullptr;
  memcpy(&result.algo, bytes.begin(), sizeof(result.algo));
  KJ_IF_MAYBE(product, productOf(shape, direction)) {
    auto d = kj::heap<Description>(*product, shape, direction);
    auto algorithm = result.algo;
    if (cublasLtMatmulAlgoCheck(cublasLt, d->operation.value, d->a.value, d->b.value, d->c.value,
            d->c.value, &algorithm, &result) != CUBLAS_STATUS_SUCCESS) {
      return nullptr;
    }
    result.algo = algorithm;  // the check does not set it
    return kj::Own<LibraryPlan>(kj::heap<LtPlan>(kj::mv(d), result));
  }
  return nullptr;
}

}  // namespace nn::cuda
