// nn/cuda/passes.h: the work of one unit, forward and backward.
#pragma once

#include "nn/cuda/lowering.h"

namespace nn::cuda {

// A batch norm takes a residual sum and any activation. A convolution or dense layer takes an
// activation other than GELU.
extern const Fusion FUSION;

// Returns the function of the unit's activation, or NONE.
Function functionOf(const Unit& unit);

// Call forward() for all units in order. For training, then call backward() for the units that
// train, in the opposite order.
class Passes {
public:
  Passes(Draft& draft, const Graph& graph, Phase phase, const LoweringOptions& options,
      const DeviceArrays& arrays);

  void forward(UnitId unit);
  void backward(UnitId unit);

  const kj::Array<Unit> units;

private:
  // The passes' data about a unit.
  struct State {
    kj::Maybe<Tensor> value;
    kj::Maybe<Tensor> slope;  // the gradient of its value, as far as it is computed
    // Data from its forward pass that its backward pass needs.
    kj::Maybe<Tensor> input;   // the form that its convolution has read
    kj::Maybe<Tensor> before;  // the input of a GELU
    Room filters;  // of a convolution or dense layer, in the form that the library needs
    Room norm;     // a batch norm's NormArrays, one after another
    Room places;   // a max pool's
  };
  // The place in a concat for the value of one of its inputs.
  struct ConcatSlice {
    UnitId concat;
    uint firstChannel;
  };

  // A convolution, or a dense layer as one.
  struct FilterLayer {
    Filters filters;
    uint kernelHeight, kernelWidth, stride, pad;
    const float* weight;
    float* weightGradient;
    kj::Maybe<const Key&> bias;  // null if there is none, or if a batch norm takes it
  };

  void forwardLayer(UnitId u);
  void backwardLayer(UnitId u);
  void forwardNorm(UnitId u, const BatchNorm& op);
  void backwardNorm(UnitId u, const BatchNorm& op);
  void forwardPool(UnitId u, const Pool& op);
  void backwardPool(UnitId u, const Pool& op);
  void forwardAdd(UnitId u);
  void backwardAdd(UnitId u);
  void forwardConcat(UnitId u);
  void backwardConcat(UnitId u);
  void forwardActivation(UnitId u);
  void forwardDropout(UnitId u);
  void backwardDropout(UnitId u);
  void forwardLoss(UnitId u, const SoftmaxCrossEntropy& op);

  // ---- values

  Element elementOf(UnitId u) const;
  // Where to write the value of `u`: in the only concat that reads it, or in a separate tensor.
  Tensor place(UnitId u);
  // A new tensor of `u`'s shape.
  Tensor tensorOf(UnitId u);
  // The value of input number `i`.
  const Tensor& input(UnitId u, uint i = 0) const;
  // `tensor`, or a dense copy of it.
  Tensor dense(const Tensor& tensor);
  // `from` in `element`, packed row by row as floats on the way; a vector of each image.
  Tensor converted(const Tensor& from, Element element);
  void copy(const Tensor& from, const Tensor& to, bool adds = false);

  // ---- gradients

  const Tensor& slope(UnitId u) const;
  // Where to write, or to add, the gradient of input number `i`; null if it has none.
  struct Sink {
    Tensor tensor;
    bool adds;
  };
  kj::Maybe<Sink> sink(UnitId u, uint i = 0);

  // ---- layers

  FilterLayer layerOf(UnitId u) const;
  // Returns the bias of `u`, a convolution or dense layer, if only a batch norm reads its value.
  // Null otherwise. The norm subtracts the mean of the batch, and the bias with it. So the layer
  // leaves the bias out, which saves three passes over its value. The bias has no gradient.
  kj::Maybe<const Key&> biasForNorm(UnitId u) const;
  ConvolutionProblem shapeOf(const FilterLayer& layer, const Tensor& x, const Tensor& y) const;
  void sumBias(const Key& bias, const Tensor& dy);

  // Returns the value of the second input. Its `data` is null if the unit has no residual.
  View residual(UnitId u);
  NormArrays normArrays(UnitId u, uint width);
  static size_t partialBytes(uint width) { return PARTIAL_ROWS * 2 * width * sizeof(float); }
  Windows windowsOf(UnitId u, const Pool& op) const;
  const DropoutMask* masksOf(UnitId u) const;

  const float* parameter(const Key& key) const { return arrays.parameters + key.offset; }
  float* gradient(const Key& key) const { return arrays.gradients + key.offset; }

  Draft& draft;
  const Graph& graph;
  const Phase phase;
  const LoweringOptions options;
  const DeviceArrays arrays;
  kj::Array<State> states;
  kj::Array<kj::Maybe<ConcatSlice>> targets;
};

}  // namespace nn::cuda
