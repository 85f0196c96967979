#include "nn/cpu/direct_convolution.h"

#include <kj/debug.h>
#include <string.h>

#include "nn/cpu/primitive.h"

namespace nn::cpu {
namespace {

using Dims = dnnl::memory::dims;
using Desc = dnnl::memory::desc;
using Tag = dnnl::memory::format_tag;
constexpr auto FLOAT = dnnl::memory::data_type::f32;

size_t floatsOf(const Desc& desc) {
  return desc.get_size() / sizeof(float);
}

// A bias of `count` floats, none if it is null, and its place in the buffer, where `padded` floats
// are for it.
struct PackedBias {
  const float* from = nullptr;
  size_t at = 0;
  size_t count = 0;
  size_t padded = 0;
};

class Pack final: public BatchTask {
public:
  Pack(Primitive primitive, const float* from, Buffer& to, PackedBias bias, uint turn)
      : primitive(kj::mv(primitive)), from(from), to(to), bias(bias), turn(turn) {}

  void run(const Step& step, uint part, uint parts) override {
    if (turn % parts != part) return;
    float* packed = step.memory.of(to, 0);
    primitive.run(step, part, {from, packed});
    if (bias.from == nullptr) return;
    memcpy(packed + bias.at, bias.from, bias.count * sizeof(float));
    memset(packed + bias.at + bias.count, 0, (bias.padded - bias.count) * sizeof(float));
  }

private:
  Primitive primitive;
  const float* from;
  Buffer& to;
  PackedBias bias;
  uint turn;
};

// Up to three channels are taken plain, where a blocked copy would be mostly padding; but for the
// weights' gradient AVX2 takes only three.
InputLayouts chooseInputs(uint channels, uint block) {
  auto forward = channels <= 3 ? Layout::PLAIN : Layout::BLOCKED;
  return {forward, block == 8 && channels < 3 ? Layout::BLOCKED : forward};
}

// The layouts of weights are chosen by the first primitive made; those for other numbers of images
// must take the same ones.
//
// oneDNN is told that blocked images have as many channels as their blocks have room for, and gets
// weights and biases padded with zeros to match: for channels that do not fill their blocks it has
// no fast code. Zeros in the padding of its inputs make zeros in that of its outputs.
class Direct final: public Convolution {
public:
  const ConvolutionShape shape;
  const ConvolutionArrays arrays;
  const InputLayouts inputs;
  dnnl::engine engine;
  dnnl::primitive_attr attributes;     // scratch memory is ours
  dnnl::primitive_attr addAttributes;  // and the result is added
  Desc forwardLayout;
  Desc backwardLayout;
  Desc gradientLayout;
  kj::Vector<kj::String> names;  // of the primitives' code

  Direct(ConvolutionShape shape, ConvolutionArrays arrays, dnnl_engine_t engine)
      : shape(shape),
        arrays(arrays),
        inputs(chooseInputs(shape.in.channels, shape.block)),
        engine(engine, true) {
    attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    // Not a copy of `attributes`: copies share what they are copies of.
    addAttributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    dnnl::post_ops add;
    add.append_sum(1.0f);
    addAttributes.set_post_ops(add);
    uint in = channelsOf(shape.in, Layout::BLOCKED);
    forwardLayout = anyWeights(filters(), channelsOf(shape.in, inputs.forward));
    gradientLayout = anyWeights(filters(), channelsOf(shape.in, inputs.weights));
    backwardLayout = pointwise() ? anyWeights(in, filters()) : anyWeights(filters(), in);
  }

  // 1×1 without steps: its backward pass over data is a forward pass with the weights transposed,
  // which, unlike oneDNN's own, can add.
  bool pointwise() const {
    return shape.op.kernel == 1 && shape.op.stride == 1 && shape.op.pad == 0;
  }

  Dims weightDims(uint filters, uint inputs) const {
    return {filters, inputs, shape.op.kernel, shape.op.kernel};
  }
  Desc anyWeights(uint filters, uint inputs) const {
    return Desc(weightDims(filters, inputs), FLOAT, Tag::any);
  }
  Desc plainWeights() const {
    return Desc(weightDims(shape.out.channels, shape.in.channels), FLOAT, Tag::oihw);
  }
  // As oneDNN is told.
  uint channelsOf(Shape s, Layout layout) const {
    return layout == Layout::PLAIN ? s.channels
                                   : (s.channels + shape.block - 1) / shape.block * shape.block;
  }
  uint filters() const { return channelsOf(shape.out, Layout::BLOCKED); }
  Desc images(uint n, Shape s, Layout layout) const {
    Dims dims = {n, channelsOf(s, layout), s.height, s.width};
    auto blocked = shape.block == 16 ? Tag::nChw16c : Tag::nChw8c;
    return Desc(dims, FLOAT, layout == Layout::PLAIN ? Tag::nchw : blocked);
  }
  Desc dx(uint n) const { return images(n, shape.in, Layout::BLOCKED); }
  Desc y(uint n) const { return images(n, shape.out, Layout::BLOCKED); }
  Desc bias() const { return Desc({filters()}, FLOAT, Tag::a); }
  // Of a lane's sums; the bias's follow the weights'.
  size_t sumFloats() const { return floatsOf(gradientLayout) + (shape.addsBias ? filters() : 0); }
  // Weights as they are packed, the bias behind them.
  size_t packedFloats() const { return floatsOf(forwardLayout) + (shape.addsBias ? filters() : 0); }
  // The part of padded weights that is no padding; what is written to it fills the rest with zeros.
  Desc unpadded(Desc padded, const Desc& plain) const {
    for (int d = 0; d < plain.data.ndims; ++d) padded.data.dims[d] = plain.data.dims[d];
    return padded;
  }

  // Output tiles of 4×4 would be mostly waste on smaller images.
  bool fitsWinograd() const {
    auto& op = shape.op;
    return shape.block == 16 && inputs.forward == Layout::BLOCKED && op.kernel == 3 &&
           op.stride == 1 && op.pad <= 1 && shape.out.height >= 4 && shape.out.width >= 4;
  }

  // Calls `make` with Winograd, then with direct, until one gives a descriptor of fast code. None
  // if there is none: oneDNN's reference code is correct, but a hundred times too slow.
  template <typename Make>
  auto choose(Make&& make) const -> decltype(make(dnnl::algorithm::convolution_direct)) {
    for (auto algorithm:
        {dnnl::algorithm::convolution_winograd, dnnl::algorithm::convolution_direct}) {
      if (algorithm == dnnl::algorithm::convolution_winograd && !fitsWinograd()) continue;
      auto desc = make(algorithm);
      if (desc && kj::StringPtr(desc.impl_info_str()).startsWith("jit")) return desc;
    }
    return {};
  }
  // The chosen descriptor, to be used.
  template <typename Descriptor>
  Descriptor use(Descriptor chosen) {
    KJ_REQUIRE(bool(chosen), "oneDNN has fast code for one image of this shape but not for more",
        shape.in, shape.out, shape.op.kernel, shape.op.stride, shape.op.pad);
    names.add(kj::str(chosen.impl_info_str()));
    return chosen;
  }

  using Forward = dnnl::convolution_forward;
  using BackwardData = dnnl::convolution_backward_data;
  using BackwardWeights = dnnl::convolution_backward_weights;

  Forward::desc forwardDesc(
      dnnl::algorithm algorithm, const Desc& x, const Desc& weights, uint n) const {
    Dims strides = {shape.op.stride, shape.op.stride}, pads = {shape.op.pad, shape.op.pad};
    auto kind = dnnl::prop_kind::forward_training;
    if (!shape.addsBias) {
      return Forward::desc(kind, algorithm, x, weights, y(n), strides, pads, pads);
    }
    return Forward::desc(kind, algorithm, x, weights, bias(), y(n), strides, pads, pads);
  }
  // For backward primitives, which ask for the forward one they belong to.
  Forward::primitive_desc hint(dnnl::algorithm algorithm, const Desc& x, uint n) const {
    auto weights = anyWeights(filters(), x.data.dims[1]);
    return {forwardDesc(algorithm, x, weights, n), attributes, engine, true};
  }
  Forward::primitive_desc describeForward(uint n) const {
    return choose([&](dnnl::algorithm algorithm) {
      auto x = images(n, shape.in, inputs.forward);
      auto forward = forwardDesc(algorithm, x, forwardLayout, n);
      return Forward::primitive_desc(forward, attributes, engine, true);
    });
  }
  Forward::primitive_desc describePointwise(uint n, Write write) const {
    return choose([&](dnnl::algorithm algorithm) {
      Forward::desc forward(dnnl::prop_kind::forward_training, algorithm, y(n), backwardLayout,
          dx(n), {1, 1}, {0, 0}, {0, 0});
      auto& how = write == Write::ADD ? addAttributes : attributes;
      return Forward::primitive_desc(forward, how, engine, true);
    });
  }
  BackwardData::primitive_desc describeBackwardData(uint n) const {
    Dims strides = {shape.op.stride, shape.op.stride}, pads = {shape.op.pad, shape.op.pad};
    return choose([&](dnnl::algorithm algorithm) -> BackwardData::primitive_desc {
      auto forward = hint(algorithm, dx(n), n);
      if (!forward) return {};
      BackwardData::desc desc(algorithm, dx(n), backwardLayout, y(n), strides, pads, pads);
      return {desc, attributes, engine, forward, true};
    });
  }
  BackwardWeights::primitive_desc describeBackwardWeights(uint n) const {
    Dims strides = {shape.op.stride, shape.op.stride}, pads = {shape.op.pad, shape.op.pad};
    return choose([&](dnnl::algorithm algorithm) -> BackwardWeights::primitive_desc {
      auto x = images(n, shape.in, inputs.weights);
      auto forward = hint(algorithm, x, n);
      if (!forward) return {};
      if (!shape.addsBias) {
        BackwardWeights::desc desc(algorithm, x, gradientLayout, y(n), strides, pads, pads);
        return {desc, attributes, engine, forward, true};
      }
      BackwardWeights::desc desc(algorithm, x, gradientLayout, bias(), y(n), strides, pads, pads);
      return {desc, attributes, engine, forward, true};
    });
  }
  // Judged by one image.
  bool isFast() const {
    return describeForward(1) && describeBackwardWeights(1) &&
           (pointwise() ? bool(describePointwise(1, Write::ADD)) : bool(describeBackwardData(1)));
  }

  Primitive repack(const Desc& from, const Desc& to) const {
    dnnl::reorder::primitive_desc desc(engine, from, engine, to);
    return Primitive(desc, engine, shape.lanes, {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}});
  }

  InputLayouts inputLayouts() const override { return inputs; }
  kj::Own<Task> forward(Place x, Place y, Buffer& scratch) override;
  kj::Own<Task> backwardWeights(Place x, Place dy, Buffer& scratch) override;
  kj::Own<Task> backwardData(Place dy, Place dx, Write write, Buffer& scratch) override;
  bool canAdd() const override { return pointwise(); }
  kj::Own<BatchTask> packForward(uint turn) override;
  kj::Own<BatchTask> packBackward(uint turn) override;
  kj::Own<BatchTask> sumGradient(uint turn) override;
  kj::Array<kj::String> implementations() const override {
    return KJ_MAP(name, names) {
      return kj::str(name);
    };
  }

private:
  class ForwardTask;
  class BackwardDataTask;
  class BackwardWeightsTask;
  class SumGradient;
};

class Direct::ForwardTask final: public Task {
public:
  ForwardTask(Direct& direct, Place in, Place out, Buffer& scratch)
      : direct(direct), in(in), out(out), scratch(scratch) {}

  void prepare(kj::ArrayPtr<const uint> images) override {
    for (uint n: images) {
      auto desc = direct.use(direct.describeForward(n));
      direct.forwardLayout = desc.weights_desc();
      scratch.floats = kj::max(scratch.floats, floatsOf(desc.scratchpad_desc()));
      Argument x = {DNNL_ARG_SRC, desc.src_desc()}, y = {DNNL_ARG_DST, desc.dst_desc()};
      Argument weights = {DNNL_ARG_WEIGHTS, desc.weights_desc()};
      Argument pad = {DNNL_ARG_SCRATCHPAD, desc.scratchpad_desc()};
      uint lanes = direct.shape.lanes;
      sizes.add(n, direct.shape.addsBias
                       ? Primitive(desc, direct.engine, lanes,
                             {x, weights, y, pad, {DNNL_ARG_BIAS, direct.bias()}})
                       : Primitive(desc, direct.engine, lanes, {x, weights, y, pad}));
    }
    direct.arrays.forwardWeights->floats = direct.packedFloats();
  }

  void run(const Step& step, const Chunk& chunk) override {
    auto& memory = step.memory;
    float* x = memory.at(in, chunk);
    float* y = memory.at(out, chunk);
    float* weights = memory.of(*direct.arrays.forwardWeights, 0);
    float* pad = memory.of(scratch, chunk.lane);
    auto& primitive = sizes.of(chunk.images);
    if (direct.shape.addsBias) {
      float* bias = weights + floatsOf(direct.forwardLayout);
      primitive.run(step, chunk.lane, {x, weights, y, pad, bias});
    } else {
      primitive.run(step, chunk.lane, {x, weights, y, pad});
    }
  }

private:
  Direct& direct;
  Place in, out;
  Buffer& scratch;
  Sizes sizes;
};

class Direct::BackwardDataTask final: public Task {
public:
  BackwardDataTask(Direct& direct, Place dy, Place dx, Write write, Buffer& scratch)
      : direct(direct), dy(dy), dx(dx), write(write), scratch(scratch) {
    KJ_REQUIRE(write == Write::SET || direct.pointwise());
  }

  void prepare(kj::ArrayPtr<const uint> images) override {
    for (uint n: images) {
      if (direct.pointwise()) {
        preparePointwise(n);
      } else {
        prepareGeneral(n);
      }
    }
    direct.arrays.backwardWeights->floats = floatsOf(direct.backwardLayout);
  }

  void run(const Step& step, const Chunk& chunk) override {
    auto& memory = step.memory;
    sizes.of(chunk.images)
        .run(step, chunk.lane,
            {memory.at(dy, chunk), memory.of(*direct.arrays.backwardWeights, 0),
                memory.at(dx, chunk), memory.of(scratch, chunk.lane)});
  }

private:
  Direct& direct;
  Place dy, dx;
  Write write;
  Buffer& scratch;
  Sizes sizes;

  void preparePointwise(uint n) {
    auto desc = direct.use(direct.describePointwise(n, write));
    direct.backwardLayout = desc.weights_desc();
    scratch.floats = kj::max(scratch.floats, floatsOf(desc.scratchpad_desc()));
    sizes.add(n,
        Primitive(desc, direct.engine, direct.shape.lanes,
            {{DNNL_ARG_SRC, desc.src_desc()}, {DNNL_ARG_WEIGHTS, desc.weights_desc()},
                {DNNL_ARG_DST, desc.dst_desc()}, {DNNL_ARG_SCRATCHPAD, desc.scratchpad_desc()}}));
  }

  void prepareGeneral(uint n) {
    auto desc = direct.use(direct.describeBackwardData(n));
    direct.backwardLayout = desc.weights_desc();
    scratch.floats = kj::max(scratch.floats, floatsOf(desc.scratchpad_desc()));
    sizes.add(
        n, Primitive(desc, direct.engine, direct.shape.lanes,
               {{DNNL_ARG_DIFF_DST, desc.diff_dst_desc()}, {DNNL_ARG_WEIGHTS, desc.weights_desc()},
                   {DNNL_ARG_DIFF_SRC, desc.diff_src_desc()},
                   {DNNL_ARG_SCRATCHPAD, desc.scratchpad_desc()}}));
  }
};

class Direct::BackwardWeightsTask final: public Task {
public:
  BackwardWeightsTask(Direct& direct, Place in, Place dy, Buffer& scratch)
      : direct(direct), in(in), dy(dy), scratch(scratch) {}

  void prepare(kj::ArrayPtr<const uint> images) override {
    for (uint n: images) {
      auto desc = direct.use(direct.describeBackwardWeights(n));
      direct.gradientLayout = desc.diff_weights_desc();
      padFloats = kj::max(padFloats, floatsOf(desc.scratchpad_desc()));
      Argument x = {DNNL_ARG_SRC, desc.src_desc()};
      Argument gradient = {DNNL_ARG_DIFF_DST, desc.diff_dst_desc()};
      Argument weights = {DNNL_ARG_DIFF_WEIGHTS, desc.diff_weights_desc()};
      Argument pad = {DNNL_ARG_SCRATCHPAD, desc.scratchpad_desc()};
      uint lanes = direct.shape.lanes;
      sizes.add(n, direct.shape.addsBias
                       ? Primitive(desc, direct.engine, lanes,
                             {x, gradient, weights, pad, {DNNL_ARG_DIFF_BIAS, direct.bias()}})
                       : Primitive(desc, direct.engine, lanes, {x, gradient, weights, pad}));
    }
    // After the primitive's scratch memory: a chunk's gradient, before it is added to the sum.
    padFloats = (padFloats + 15) / 16 * 16;
    scratch.floats = padFloats + direct.sumFloats();
    direct.arrays.sums->floats = direct.shape.lanes * direct.sumFloats();
  }

  void run(const Step& step, const Chunk& chunk) override {
    auto& memory = step.memory;
    float* pad = memory.of(scratch, chunk.lane);
    float* sum = memory.of(*direct.arrays.sums, 0) + chunk.lane * direct.sumFloats();
    float* weights = chunk.opening ? sum : pad + padFloats;
    float* x = memory.at(in, chunk);
    float* gradient = memory.at(dy, chunk);
    auto& primitive = sizes.of(chunk.images);
    if (direct.shape.addsBias) {
      float* bias = weights + floatsOf(direct.gradientLayout);
      primitive.run(step, chunk.lane, {x, gradient, weights, pad, bias});
    } else {
      primitive.run(step, chunk.lane, {x, gradient, weights, pad});
    }
    if (!chunk.opening) step.kernels.copy(weights, sum, Write::ADD, direct.sumFloats());
  }

private:
  Direct& direct;
  Place in, dy;
  Buffer& scratch;
  Sizes sizes;
  size_t padFloats = 0;
};

class Direct::SumGradient final: public BatchTask {
public:
  SumGradient(Direct& direct, uint turn)
      : direct(direct),
        repack(direct.repack(
            direct.unpadded(direct.gradientLayout, direct.plainWeights()), direct.plainWeights())),
        turn(turn) {}

  void run(const Step& step, uint part, uint parts) override {
    if (turn % parts != part) return;
    auto& arrays = direct.arrays;
    size_t count = direct.sumFloats();
    float* sum = step.memory.of(*arrays.sums, 0);
    for (uint lane = 1; lane < direct.shape.lanes; ++lane) {
      step.kernels.copy(sum + lane * count, sum, Write::ADD, count);
    }
    repack.run(step, part, {sum, arrays.weightsGradient});
    if (arrays.bias == nullptr) return;
    size_t bytes = direct.shape.out.channels * sizeof(float);
    if (direct.shape.addsBias) {
      memcpy(arrays.biasGradient, sum + floatsOf(direct.gradientLayout), bytes);
    } else {
      memset(arrays.biasGradient, 0, bytes);
    }
  }

private:
  Direct& direct;
  Primitive repack;
  uint turn;
};

kj::Own<Task> Direct::forward(Place x, Place y, Buffer& scratch) {
  return kj::heap<ForwardTask>(*this, x, y, scratch);
}

kj::Own<Task> Direct::backwardWeights(Place x, Place dy, Buffer& scratch) {
  return kj::heap<BackwardWeightsTask>(*this, x, dy, scratch);
}

kj::Own<Task> Direct::backwardData(Place dy, Place dx, Write write, Buffer& scratch) {
  return kj::heap<BackwardDataTask>(*this, dy, dx, write, scratch);
}

kj::Own<BatchTask> Direct::packForward(uint turn) {
  auto plain = plainWeights();
  auto primitive = repack(plain, unpadded(forwardLayout, plain));
  PackedBias bias;
  if (shape.addsBias) {
    bias = {.from = arrays.bias,
        .at = floatsOf(forwardLayout),
        .count = shape.out.channels,
        .padded = filters()};
  }
  return kj::heap<Pack>(kj::mv(primitive), arrays.weights, *arrays.forwardWeights, bias, turn);
}

kj::Own<BatchTask> Direct::packBackward(uint turn) {
  auto plain = plainWeights();
  if (pointwise()) plain = plain.permute_axes({1, 0, 2, 3});
  auto primitive = repack(plain, unpadded(backwardLayout, plain));
  return kj::heap<Pack>(
      kj::mv(primitive), arrays.weights, *arrays.backwardWeights, PackedBias{}, turn);
}

kj::Own<BatchTask> Direct::sumGradient(uint turn) {
  return kj::heap<SumGradient>(*this, turn);
}

}  // namespace

kj::Maybe<kj::Own<Convolution>> makeDirectConvolution(
    ConvolutionShape shape, ConvolutionArrays arrays, dnnl_engine_t engine) {
  auto direct = kj::heap<Direct>(shape, arrays, engine);
  if (!direct->isFast()) return nullptr;
  return kj::Own<Convolution>(kj::mv(direct));
}

}  // namespace nn::cpu
