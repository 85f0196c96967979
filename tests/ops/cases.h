// tests/ops/cases.h: the list of op cases that correctness, gradients and speed are measured on.
//
// To add a case: write its layers as in [[model.layers]], so that the op under test is between a
// layer with parameters (whose gradient shows that the gradient of the op's input is right) and a
// dense layer of `classes` units. Choose shapes that no vector length divides. Loosen `tolerance`
// only with the reason in a comment.
#pragma once

#include <kj/array.h>
#include <kj/memory.h>

#include "configs/language/document.h"
#include "nn/network/graph.h"
#include "nn/program.h"

namespace tests {

using kj::uint;

struct Case {
  const char* name;
  nn::Shape input;
  uint classes;
  uint batchSize;
  const char* layers;  // the TOML list
  // The allowed distance of float32 from the reference: |error| / |value|, both Euclidean norms of
  // a whole array. oneDNN with AVX-512 reaches 3e-6 in the worst case, a batch norm that divides by
  // a deviation of few values. The rest is a margin for other orders of addition.
  double tolerance = 2e-5;
  float labelSmoothing = 0;
};
extern const kj::ArrayPtr<const Case> CASES;

// A case's graph, with the text that its spans point into.
struct CaseGraph {
  kj::Own<configs::Document> document;
  nn::Graph graph;
};
CaseGraph build(const Case& c);

// Pixels are normal, and each row has a number for dropout. If the batch has more than two rows,
// the second of every three labels is -1.
struct CaseBatch {
  kj::Array<float> pixels;
  kj::Array<int32_t> labels;
  kj::Array<uint64_t> draws;
};
CaseBatch draw(const Case& c, uint64_t seed);

// Fills the parameters with values as in the middle of training: Xavier's weights, no bias is 0, no
// gamma is 1.
void fill(const nn::Graph& graph, nn::Program& program);

// Runs all segments forward, and in training also backward.
nn::BatchResult step(const nn::Graph& graph, nn::Program& program, nn::Phase phase);

}  // namespace tests
