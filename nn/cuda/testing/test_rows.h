// nn/cuda/testing/test_rows.h: tables of kernels, each with the plain loop that it must agree with.
#pragma once

#include <kj/function.h>
#include <kj/string.h>
#include <kj/vector.h>

#include "nn/cuda/testing/host_kernels.h"
#include "nn/cuda/testing/test_batch.h"

namespace nn::cuda {

// The inputs with which a row is run.
struct Trial {
  Element element;
  Shape shape;
  uint images;
  bool adds;
  kj::ArrayPtr<const Tensor> values;  // of the inputs, as they are after rounding
  kj::ArrayPtr<Batch> inputs;
  Batch& output;
  Order order;

  void run(const Kernel& kernel) const { runOnHost(kernel, order); }
};

struct Row {
  kj::String name;
  uint inputs;
  bool canAdd;
  // Runs the kernel in the trial.
  kj::Function<void(const Trial&)> run;
  // Adds what the kernel should compute to `y`, which begins as zeros.
  kj::Function<void(const Trial&, Tensor& y)> expect;
  // Set if the row is a pool's. With one input, the output has the shape that the pool gives. With
  // two, the second input has that shape, and the output has the shape of the first.
  kj::Maybe<Pool> pool = nullptr;
  // The allowed error is `error`, plus one rounding for floats, or `roundings` roundings for
  // elements of 16 bits.
  double roundings = 1.01;
  double error = 2e-6;
};

// Runs every row on the host: with every element, all forms of memory, more and fewer pixels than
// PARTIAL_ROWS, with and without adding, and in both orders. Checks that the row wrote the right
// values and nothing else, and that the order changed no bit.
void checkRows(kj::ArrayPtr<Row> rows);

constexpr Function FUNCTIONS[] = {Function::NONE, Function::RELU, Function::TANH, Function::SIGMOID,
    Function::ELU, Function::GELU};
kj::StringPtr nameOf(Function function);

// Adds f(u) to y, f'(u) · dy to dx.
void addActivated(Function function, const Tensor& u, Tensor& y);
void addSlope(Function function, const Tensor& u, const Tensor& dy, Tensor& dx);

void addTo(Tensor& y, const Tensor& more);

}  // namespace nn::cuda
