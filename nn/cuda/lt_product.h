// nn/cuda/lt_product.h: dense layers and 1×1 convolutions as matrix products, by cuBLASLt.
#pragma once

#include "nn/cuda/library_plan.h"

struct cublasLtContext;

namespace nn::cuda {

// C = op(A)·op(B) as BLAS says it: op(A) is m×k, op(B) k×n, C m×n, all column by column, columns
// `ld` values apart.
struct Product {
  bool swaps;  // A is the convolution's b and B its a, in place of a and b
  bool transposesA, transposesB;
  uint64_t m, n, k;
  int64_t lda, ldb, ldc;

  bool operator==(const Product&) const = default;
};

// The product that `direction` of a convolution is: of one whose kernel covers its input's plane
// without padding, or of 1×1 with stride 1. Null if it is none. With the rows of x (N or all
// pixels, times C), y (times K) and filters (K×C): y = x·wᵀ, dx = dy·w, dw = dyᵀ·x; a matrix that
// lies row by row is its transpose column by column, so that BLAS has all of them the other way
// round.
kj::Maybe<Product> productOf(const ConvolutionProblem& shape, Direction direction);

// At most `most` ways of doing the product, those first that cuBLASLt thinks fastest, with at most
// `workspaceMax_bytes`. Partial sums are added in float32, in an order that is always the same.
// None if the convolution is no product, or cuBLASLt has none. Throws if cuBLASLt fails.
kj::Array<kj::Own<LibraryPlan>> ltPlans(cublasLtContext* cublasLt, const ConvolutionProblem& shape,
    Direction direction, size_t workspaceMax_bytes, uint most);

// The plan that had this name; null if it is none of cuBLASLt's, or cannot be made any more.
kj::Maybe<kj::Own<LibraryPlan>> ltPlanNamed(cublasLtContext* cublasLt,
    const ConvolutionProblem& shape, Direction direction, kj::StringPtr name);

}  // namespace nn::cuda
