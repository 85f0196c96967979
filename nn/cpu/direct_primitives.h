// nn/cpu/direct_primitives.h: oneDNN's primitives for one convolution, and the layouts that they
// need.
#pragma once

#include <kj/array.h>
#include <kj/string.h>
#include <kj/vector.h>

#include <dnnl.hpp>

#include "nn/cpu/convolution.h"
#include "nn/cpu/primitive.h"

namespace nn::cpu {

// The first primitive chooses the layout of the weights. Primitives for other numbers of images
// must take the same layout. Therefore the size of packed weights, and the primitive that packs
// them, are known once the primitives that read or write them are made.
//
// oneDNN has no fast code for channels that do not fill their blocks. So it gets weights and biases
// that are padded with zeros, and a number of channels that fills all blocks. Zeros in the padding
// of inputs make zeros in the padding of outputs.
//
// If values are bfloat16s, packed weights are bfloat16s too. Biases and all gradients of parameters
// stay floats.
class DirectPrimitives {
public:
  DirectPrimitives(ConvolutionShape shape, dnnl_engine_t engine);

  const ConvolutionShape shape;
  const InputLayouts inputs;

  // Whether oneDNN has fast code for all that is needed, judged by one image.
  bool areFast() const;

  // Return primitives for `n` images. The comments name their arguments in order. `scratchFloats`
  // becomes at least the scratch memory that the primitive needs, in floats. If no bias is added,
  // the primitive does not touch its last argument.
  Primitive forward(uint n, size_t& scratchFloats);          // x, weights, y, scratch, bias
  Primitive backwardWeights(uint n, size_t& scratchFloats);  // x, dy, dw, scratch, dbias
  Primitive backwardData(uint n, Write write, size_t& scratchFloats);  // dy, weights, dx, scratch
  // Whether backwardData can add.
  bool canAdd() const { return isPointwise(); }

  // Return primitives that convert plain weights to the layouts of forward() and backwardData(),
  // and the gradient of backwardWeights() to plain weights.
  Primitive packForward() const;
  Primitive packBackward() const;
  Primitive unpackGradient() const;

  // The sizes of the weights in these layouts, and of the bias, in floats. The size of the bias is
  // 0 if none is added.
  size_t plainFloats() const { return floatsOf(plainWeights()); }
  size_t forwardFloats() const { return floatsOf(forwardLayout); }
  size_t backwardFloats() const { return floatsOf(backwardLayout); }
  size_t gradientFloats() const { return floatsOf(gradientLayout); }
  size_t biasFloats() const { return floatsOf(bias()); }

  // Returns oneDNN's names for the code of the primitives that were made.
  kj::ArrayPtr<const kj::String> names() const { return used; }

private:
  using Desc = dnnl::memory::desc;
  using Forward = dnnl::convolution_forward;
  using BackwardData = dnnl::convolution_backward_data;
  using BackwardWeights = dnnl::convolution_backward_weights;

  static size_t floatsOf(const Desc& desc) { return desc.get_size() / sizeof(float); }

  bool isPointwise() const;
  bool fitsWinograd() const;

  // Layouts.
  uint channelsOf(Shape s, Layout layout) const;
  uint filters() const { return channelsOf(shape.out, Layout::BLOCKED); }
  dnnl::memory::data_type valueType() const;
  Desc anyWeights(uint filters, uint inputs, dnnl::memory::data_type type) const;
  Desc plainWeights() const;
  Desc images(uint n, Shape s, Layout layout) const;
  Desc dx(uint n) const { return images(n, shape.in, Layout::BLOCKED); }
  Desc y(uint n) const { return images(n, shape.out, Layout::BLOCKED); }
  Desc bias() const;

  // Descriptors of primitives, empty if there is no fast code.
  template <typename Make>
  auto choose(Make&& make) const -> decltype(make(dnnl::algorithm::convolution_direct));
  Forward::desc forwardDesc(
      dnnl::algorithm algorithm, const Desc& x, const Desc& weights, uint n) const;
  Forward::primitive_desc hint(dnnl::algorithm algorithm, const Desc& x, uint n) const;
  Forward::primitive_desc describeForward(uint n) const;
  Forward::primitive_desc describePointwise(uint n, Write write) const;
  BackwardData::primitive_desc describeBackwardData(uint n) const;
  BackwardWeights::primitive_desc describeBackwardWeights(uint n) const;

  // Returns `chosen`. Notes its name, and raises `scratchFloats`.
  template <typename Descriptor>
  Descriptor use(Descriptor chosen, size_t& scratchFloats);
  Primitive repack(const Desc& from, const Desc& to) const;

  dnnl::engine engine;
  const dnnl::memory::dims strides, pads;
  dnnl::primitive_attr attributes;     // scratch memory is ours
  dnnl::primitive_attr addAttributes;  // and the result is added
  Desc forwardLayout;
  Desc backwardLayout;
  Desc gradientLayout;
  kj::Vector<kj::String> used;
};

}  // namespace nn::cpu
