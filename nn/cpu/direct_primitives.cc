#include "nn/cpu/direct_primitives.h"

#include <kj/debug.h>

namespace nn::cpu {
namespace {

using Dims = dnnl::memory::dims;
using Desc = dnnl::memory::desc;
using Tag = dnnl::memory::format_tag;
using Type = dnnl::memory::data_type;
constexpr auto FLOAT = Type::f32;

// Images of up to three channels stay plain, because a blocked copy would be mostly padding. On
// AVX2, the gradient of the weights takes plain images of three channels only.
InputLayouts chooseInputs(uint channels, uint block) {
  auto forward = channels <= 3 ? Layout::PLAIN : Layout::BLOCKED;
  return {forward, block == 8 && channels < 3 ? Layout::BLOCKED : forward};
}

// Returns the part of padded weights without the padding. A primitive that writes to it fills the
// padding with zeros.
Desc unpadded(Desc padded, const Desc& plain) {
  for (int d = 0; d < plain.data.ndims; ++d) padded.data.dims[d] = plain.data.dims[d];
  return padded;
}

}  // namespace

DirectPrimitives::DirectPrimitives(ConvolutionShape shape, dnnl_engine_t engine)
    : shape(shape),
      inputs(chooseInputs(shape.in.channels, shape.block)),
      engine(engine, true),
      strides({shape.op.stride, shape.op.stride}),
      pads({shape.op.pad, shape.op.pad}) {
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  // This is not a copy of `attributes`, because copies share their content.
  addAttributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  dnnl::post_ops add;
  add.append_sum(1.0f);
  addAttributes.set_post_ops(add);
  uint in = channelsOf(shape.in, Layout::BLOCKED);
  auto type = valueType();
  forwardLayout = anyWeights(filters(), channelsOf(shape.in, inputs.forward), type);
  gradientLayout = anyWeights(filters(), channelsOf(shape.in, inputs.weights), FLOAT);
  backwardLayout =
      isPointwise() ? anyWeights(in, filters(), type) : anyWeights(filters(), in, type);
}

// 1×1 without steps: its backward pass over data is a forward pass with the weights transposed,
// which, unlike oneDNN's own, can add.
bool DirectPrimitives::isPointwise() const {
  return shape.op.kernel == 1 && shape.op.stride == 1 && shape.op.pad == 0;
}

// On smaller images, most of an output tile of 4×4 would be waste. oneDNN has no Winograd for
// bfloat16s.
bool DirectPrimitives::fitsWinograd() const {
  auto& op = shape.op;
  return shape.element == Element::FLOAT32 && shape.block == 16 &&
         inputs.forward == Layout::BLOCKED && op.kernel == 3 && op.stride == 1 && op.pad <= 1 &&
         shape.out.height >= 4 && shape.out.width >= 4;
}

// The number of channels that oneDNN gets.
uint DirectPrimitives::channelsOf(Shape s, Layout layout) const {
  return layout == Layout::PLAIN ? s.channels
                                 : (s.channels + shape.block - 1) / shape.block * shape.block;
}

Type DirectPrimitives::valueType() const {
  return shape.element == Element::FLOAT32 ? FLOAT : Type::bf16;
}

Desc DirectPrimitives::anyWeights(uint filters, uint inputs, Type type) const {
  return Desc({filters, inputs, shape.op.kernel, shape.op.kernel}, type, Tag::any);
}

Desc DirectPrimitives::plainWeights() const {
  return Desc(
      {shape.out.channels, shape.in.channels, shape.op.kernel, shape.op.kernel}, FLOAT, Tag::oihw);
}

Desc DirectPrimitives::images(uint n, Shape s, Layout layout) const {
  Dims dims = {n, channelsOf(s, layout), s.height, s.width};
  auto blocked = shape.block == 16 ? Tag::nChw16c : Tag::nChw8c;
  return Desc(dims, valueType(), layout == Layout::PLAIN ? Tag::nchw : blocked);
}

// An empty descriptor tells oneDNN that there is no bias.
Desc DirectPrimitives::bias() const {
  return shape.addsBias ? Desc({filters()}, FLOAT, Tag::a) : Desc();
}

// Calls `make` for Winograd and then for the direct algorithm, until the result is a descriptor of
// fast code. Returns an empty one if oneDNN has only its reference code, which is correct, but a
// hundred times slower.
template <typename Make>
auto DirectPrimitives::choose(Make&& make) const
    -> decltype(make(dnnl::algorithm::convolution_direct)) {
  for (auto algorithm:
      {dnnl::algorithm::convolution_winograd, dnnl::algorithm::convolution_direct}) {
    if (algorithm == dnnl::algorithm::convolution_winograd && !fitsWinograd()) continue;
    auto desc = make(algorithm);
    if (desc && kj::StringPtr(desc.impl_info_str()).startsWith("jit")) return desc;
  }
  return {};
}

DirectPrimitives::Forward::desc DirectPrimitives::forwardDesc(
    dnnl::algorithm algorithm, const Desc& x, const Desc& weights, uint n) const {
  return Forward::desc(
      dnnl::prop_kind::forward_training, algorithm, x, weights, bias(), y(n), strides, pads, pads);
}

// Returns the forward descriptor that a backward primitive asks for.
DirectPrimitives::Forward::primitive_desc DirectPrimitives::hint(
    dnnl::algorithm algorithm, const Desc& x, uint n) const {
  auto weights = anyWeights(filters(), x.data.dims[1], valueType());
  return {forwardDesc(algorithm, x, weights, n), attributes, engine, true};
}

DirectPrimitives::Forward::primitive_desc DirectPrimitives::describeForward(uint n) const {
  return choose([&](dnnl::algorithm algorithm) {
    auto x = images(n, shape.in, inputs.forward);
    auto forward = forwardDesc(algorithm, x, forwardLayout, n);
    return Forward::primitive_desc(forward, attributes, engine, true);
  });
}

DirectPrimitives::Forward::primitive_desc DirectPrimitives::describePointwise(
    uint n, Write write) const {
  return choose([&](dnnl::algorithm algorithm) {
    Forward::desc forward(dnnl::prop_kind::forward_training, algorithm, y(n), backwardLayout, dx(n),
        {1, 1}, {0, 0}, {0, 0});
    auto& how = write == Write::ADD ? addAttributes : attributes;
    return Forward::primitive_desc(forward, how, engine, true);
  });
}

DirectPrimitives::BackwardData::primitive_desc DirectPrimitives::describeBackwardData(
    uint n) const {
  return choose([&](dnnl::algorithm algorithm) -> BackwardData::primitive_desc {
    auto forward = hint(algorithm, dx(n), n);
    if (!forward) return {};
    BackwardData::desc desc(algorithm, dx(n), backwardLayout, y(n), strides, pads, pads);
    return {desc, attributes, engine, forward, true};
  });
}

DirectPrimitives::BackwardWeights::primitive_desc DirectPrimitives::describeBackwardWeights(
    uint n) const {
  return choose([&](dnnl::algorithm algorithm) -> BackwardWeights::primitive_desc {
    auto x = images(n, shape.in, inputs.weights);
    auto forward = hint(algorithm, x, n);
    if (!forward) return {};
    BackwardWeights::desc desc(algorithm, x, gradientLayout, bias(), y(n), strides, pads, pads);
    return {desc, attributes, engine, forward, true};
  });
}

bool DirectPrimitives::areFast() const {
  return describeForward(1) && describeBackwardWeights(1) &&
         (isPointwise() ? bool(describePointwise(1, Write::ADD)) : bool(describeBackwardData(1)));
}

template <typename Descriptor>
Descriptor DirectPrimitives::use(Descriptor chosen, size_t& scratchFloats) {
  KJ_REQUIRE(bool(chosen), "oneDNN has fast code for one image of this shape but not for more",
      shape.in, shape.out, shape.op.kernel, shape.op.stride, shape.op.pad);
  used.add(kj::str(chosen.impl_info_str()));
  scratchFloats = kj::max(scratchFloats, floatsOf(chosen.scratchpad_desc()));
  return chosen;
}

Primitive DirectPrimitives::forward(uint n, size_t& scratchFloats) {
  auto desc = use(describeForward(n), scratchFloats);
  forwardLayout = desc.weights_desc();
  return Primitive(desc, engine, shape.lanes,
      {{DNNL_ARG_SRC, desc.src_desc()}, {DNNL_ARG_WEIGHTS, forwardLayout},
          {DNNL_ARG_DST, desc.dst_desc()}, {DNNL_ARG_SCRATCHPAD, desc.scratchpad_desc()},
          {DNNL_ARG_BIAS, bias()}});
}

Primitive DirectPrimitives::backwardWeights(uint n, size_t& scratchFloats) {
  auto desc = use(describeBackwardWeights(n), scratchFloats);
  gradientLayout = desc.diff_weights_desc();
  return Primitive(desc, engine, shape.lanes,
      {{DNNL_ARG_SRC, desc.src_desc()}, {DNNL_ARG_DIFF_DST, desc.diff_dst_desc()},
          {DNNL_ARG_DIFF_WEIGHTS, gradientLayout}, {DNNL_ARG_SCRATCHPAD, desc.scratchpad_desc()},
          {DNNL_ARG_DIFF_BIAS, bias()}});
}

Primitive DirectPrimitives::backwardData(uint n, Write write, size_t& scratchFloats) {
  if (isPointwise()) {
    auto desc = use(describePointwise(n, write), scratchFloats);
    backwardLayout = desc.weights_desc();
    return Primitive(desc, engine, shape.lanes,
        {{DNNL_ARG_SRC, desc.src_desc()}, {DNNL_ARG_WEIGHTS, backwardLayout},
            {DNNL_ARG_DST, desc.dst_desc()}, {DNNL_ARG_SCRATCHPAD, desc.scratchpad_desc()}});
  }
  KJ_REQUIRE(write == Write::SET);
  auto desc = use(describeBackwardData(n), scratchFloats);
  backwardLayout = desc.weights_desc();
  return Primitive(desc, engine, shape.lanes,
      {{DNNL_ARG_DIFF_DST, desc.diff_dst_desc()}, {DNNL_ARG_WEIGHTS, backwardLayout},
          {DNNL_ARG_DIFF_SRC, desc.diff_src_desc()},
          {DNNL_ARG_SCRATCHPAD, desc.scratchpad_desc()}});
}

Primitive DirectPrimitives::repack(const Desc& from, const Desc& to) const {
  dnnl::reorder::primitive_desc desc(engine, from, engine, to);
  return Primitive(desc, engine, shape.lanes, {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}});
}

Primitive DirectPrimitives::packForward() const {
  auto plain = plainWeights();
  return repack(plain, unpadded(forwardLayout, plain));
}

Primitive DirectPrimitives::packBackward() const {
  auto plain = plainWeights();
  if (isPointwise()) plain = plain.permute_axes({1, 0, 2, 3});
  return repack(plain, unpadded(backwardLayout, plain));
}

Primitive DirectPrimitives::unpackGradient() const {
  auto plain = plainWeights();
  return repack(unpadded(gradientLayout, plain), plain);
}

}  // namespace nn::cpu
