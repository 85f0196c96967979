// nn/cuda/lt_product.h: dense layers and 1×1 convolutions as matrix products, by cuBLASLt.
#pragma once

#include "nn/cuda/library_plan.h"

struct cublasLtContext;

namespace nn::cuda {

// C = op(A)·op(B) in the terms of BLAS: op(A) is m×k, op(B) is k×n, C is m×n. All are stored column
// by column, with columns `ld` values apart.
struct Product {
  bool swaps;  // A is the convolution's b and B its a, in place of a and b
  bool transposesA, transposesB;
  uint64_t m, n, k;
  int64_t lda, ldb, ldc;

  bool operator==(const Product&) const = default;
};

// Returns the matrix product that computes `direction` of a convolution. There is one if the kernel
// covers the plane of the input without padding, or if it is 1×1 with stride 1. Otherwise returns
// null. Let the rows of x be N (or all pixels) × C, those of y × K, and filters K×C. Then y = x·wᵀ,
// dx = dy·w and dw = dyᵀ·x. A matrix stored row by row is its transpose stored column by column, so
// BLAS sees all of them transposed.
kj::Maybe<Product> productOf(const ConvolutionProblem& shape, Direction direction);

// Returns at most `most` plans for the product, with at most `workspaceMax_bytes`. Those that
// cuBLASLt expects to be fastest come first. Partial sums are added in float32, always in the same
// order. Returns none if the convolution is not a product, or cuBLASLt has no plan. Throws if
// cuBLASLt fails.
kj::Array<kj::Own<LibraryPlan>> ltPlans(cublasLtContext* cublasLt, const ConvolutionProblem& shape,
    Direction direction, size_t workspaceMax_bytes, uint most);

// Returns the plan with this name. Null if cuBLASLt has no such plan, or can no longer make it.
kj::Maybe<kj::Own<LibraryPlan>> ltPlanNamed(cublasLtContext* cublasLt,
    const ConvolutionProblem& shape, Direction direction, kj::StringPtr name);

}  // namespace nn::cuda
