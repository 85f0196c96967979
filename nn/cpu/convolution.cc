#include "nn/cpu/convolution.h"

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

class Pack final: public BatchTask {
public:
  Pack(Primitive primitive, const float* from, Buffer& to, uint turn)
      : primitive(kj::mv(primitive)), from(from), to(to), turn(turn) {}

  void run(const Step& step, uint part, uint parts) override {
    if (turn % parts == part) primitive.run(step, part, {from, step.memory.of(to, 0)});
  }

private:
  Primitive primitive;
  const float* from;
  Buffer& to;
  uint turn;
};

}  // namespace

// What all tasks of a convolution share. The layouts of weights are chosen by the first primitive
// made; those for other numbers of images must take the same ones.
struct Convolution::Layouts {
  ConvolutionShape shape;
  ConvolutionArrays arrays;
  dnnl::engine engine;
  dnnl::primitive_attr attributes;     // scratch memory is ours
  dnnl::primitive_attr addAttributes;  // and the result is added
  Desc forwardWeights;
  Desc backwardWeights;
  Desc weightsGradient;
  kj::Vector<kj::String> implementations;

  Layouts(ConvolutionShape shape, ConvolutionArrays arrays, dnnl_engine_t engine)
      : shape(shape), arrays(arrays), engine(engine, true) {
    attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    // Not a copy of `attributes`: copies share what they are copies of.
    addAttributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    dnnl::post_ops add;
    add.append_sum(1.0f);
    addAttributes.set_post_ops(add);
    forwardWeights = anyWeights(shape.out.channels, shape.in.channels);
    weightsGradient = forwardWeights;
    backwardWeights = pointwise() ? anyWeights(shape.in.channels, shape.out.channels)
                                  : anyWeights(shape.out.channels, shape.in.channels);
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
  Desc images(uint n, Shape s, Layout layout) const {
    Dims dims = {n, s.channels, s.height, s.width};
    auto blocked = shape.block == 16 ? Tag::nChw16c : Tag::nChw8c;
    return Desc(dims, FLOAT, layout == Layout::PLAIN ? Tag::nchw : blocked);
  }
  Desc dx(uint n) const { return images(n, shape.in, Layout::BLOCKED); }
  Desc y(uint n) const { return images(n, shape.out, Layout::BLOCKED); }
  Desc bias() const { return Desc({shape.out.channels}, FLOAT, Tag::a); }
  // Of a lane's sums; the bias's follow the weights'.
  size_t sumFloats() const {
    return floatsOf(weightsGradient) + (shape.addsBias ? shape.out.channels : 0);
  }

  // Output tiles of 4×4 would be mostly waste on smaller images. Channels that do not fill their
  // blocks crash oneDNN's Winograd now and then.
  bool fitsWinograd() const {
    auto& op = shape.op;
    return shape.block == 16 && op.kernel == 3 && op.stride == 1 && op.pad <= 1 &&
           shape.in.channels % 16 == 0 && shape.out.channels % 16 == 0 && shape.out.height >= 4 &&
           shape.out.width >= 4;
  }

  // Calls `make` with Winograd, then with direct, until one gives a descriptor.
  template <typename Descriptor, typename Make>
  Descriptor choose(Make&& make) {
    Descriptor chosen;
    if (fitsWinograd()) chosen = make(dnnl::algorithm::convolution_winograd);
    if (!chosen) chosen = make(dnnl::algorithm::convolution_direct);
    KJ_REQUIRE(bool(chosen), "oneDNN has no convolution for this shape", shape.in, shape.out,
        shape.op.kernel, shape.op.stride, shape.op.pad);
    implementations.add(kj::str(chosen.impl_info_str()));
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
    auto weights = anyWeights(shape.out.channels, shape.in.channels);
    return {forwardDesc(algorithm, x, weights, n), attributes, engine, true};
  }
  Primitive repack(const Desc& from, const Desc& to) const {
    dnnl::reorder::primitive_desc desc(engine, from, engine, to);
    return Primitive(desc, engine, shape.lanes, {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}});
  }

  class ForwardTask;
  class BackwardDataTask;
  class BackwardWeightsTask;
  class SumGradient;
};

class Convolution::Layouts::ForwardTask final: public Task {
public:
  ForwardTask(Layouts& layouts, Place in, Place out, Buffer& scratch)
      : layouts(layouts), in(in), out(out), scratch(scratch) {}

  void prepare(kj::ArrayPtr<const uint> images) override {
    for (uint n: images) {
      auto desc = layouts.choose<Forward::primitive_desc>([&](dnnl::algorithm algorithm) {
        auto x = layouts.images(n, layouts.shape.in, layouts.shape.forwardInput);
        auto forward = layouts.forwardDesc(algorithm, x, layouts.forwardWeights, n);
        return Forward::primitive_desc(forward, layouts.attributes, layouts.engine, true);
      });
      layouts.forwardWeights = desc.weights_desc();
      scratch.floats = kj::max(scratch.floats, floatsOf(desc.scratchpad_desc()));
      Argument x = {DNNL_ARG_SRC, desc.src_desc()}, y = {DNNL_ARG_DST, desc.dst_desc()};
      Argument weights = {DNNL_ARG_WEIGHTS, desc.weights_desc()};
      Argument pad = {DNNL_ARG_SCRATCHPAD, desc.scratchpad_desc()};
      uint lanes = layouts.shape.lanes;
      sizes.add(n, layouts.shape.addsBias
                       ? Primitive(desc, layouts.engine, lanes,
                             {x, weights, y, pad, {DNNL_ARG_BIAS, layouts.bias()}})
                       : Primitive(desc, layouts.engine, lanes, {x, weights, y, pad}));
    }
    layouts.arrays.forwardWeights->floats = floatsOf(layouts.forwardWeights);
  }

  void run(const Step& step, const Chunk& chunk) override {
    auto& memory = step.memory;
    float* x = memory.at(in, chunk);
    float* y = memory.at(out, chunk);
    float* weights = memory.of(*layouts.arrays.forwardWeights, 0);
    float* pad = memory.of(scratch, chunk.lane);
    auto& primitive = sizes.of(chunk.images);
    if (layouts.shape.addsBias) {
      primitive.run(step, chunk.lane, {x, weights, y, pad, layouts.arrays.bias});
    } else {
      primitive.run(step, chunk.lane, {x, weights, y, pad});
    }
  }

private:
  Layouts& layouts;
  Place in, out;
  Buffer& scratch;
  Sizes sizes;
};

class Convolution::Layouts::BackwardDataTask final: public Task {
public:
  BackwardDataTask(Layouts& layouts, Place dy, Place dx, Write write, Buffer& scratch)
      : layouts(layouts), dy(dy), dx(dx), write(write), scratch(scratch) {
    KJ_REQUIRE(write == Write::SET || layouts.pointwise());
  }

  void prepare(kj::ArrayPtr<const uint> images) override {
    for (uint n: images) {
      if (layouts.pointwise()) {
        preparePointwise(n);
      } else {
        prepareGeneral(n);
      }
    }
    layouts.arrays.backwardWeights->floats = floatsOf(layouts.backwardWeights);
  }

  void run(const Step& step, const Chunk& chunk) override {
    auto& memory = step.memory;
    sizes.of(chunk.images)
        .run(step, chunk.lane,
            {memory.at(dy, chunk), memory.of(*layouts.arrays.backwardWeights, 0),
                memory.at(dx, chunk), memory.of(scratch, chunk.lane)});
  }

private:
  Layouts& layouts;
  Place dy, dx;
  Write write;
  Buffer& scratch;
  Sizes sizes;

  void preparePointwise(uint n) {
    auto desc = layouts.choose<Forward::primitive_desc>([&](dnnl::algorithm algorithm) {
      Forward::desc forward(dnnl::prop_kind::forward_training, algorithm, layouts.y(n),
          layouts.backwardWeights, layouts.dx(n), {1, 1}, {0, 0}, {0, 0});
      auto& attributes = write == Write::ADD ? layouts.addAttributes : layouts.attributes;
      return Forward::primitive_desc(forward, attributes, layouts.engine, true);
    });
    layouts.backwardWeights = desc.weights_desc();
    scratch.floats = kj::max(scratch.floats, floatsOf(desc.scratchpad_desc()));
    sizes.add(n,
        Primitive(desc, layouts.engine, layouts.shape.lanes,
            {{DNNL_ARG_SRC, desc.src_desc()}, {DNNL_ARG_WEIGHTS, desc.weights_desc()},
                {DNNL_ARG_DST, desc.dst_desc()}, {DNNL_ARG_SCRATCHPAD, desc.scratchpad_desc()}}));
  }

  void prepareGeneral(uint n) {
    auto& op = layouts.shape.op;
    Dims strides = {op.stride, op.stride}, pads = {op.pad, op.pad};
    auto desc = layouts.choose<BackwardData::primitive_desc>([&](dnnl::algorithm algorithm) {
      auto hint = layouts.hint(algorithm, layouts.dx(n), n);
      if (!hint) return BackwardData::primitive_desc();
      BackwardData::desc backward(
          algorithm, layouts.dx(n), layouts.backwardWeights, layouts.y(n), strides, pads, pads);
      return BackwardData::primitive_desc(backward, layouts.attributes, layouts.engine, hint, true);
    });
    layouts.backwardWeights = desc.weights_desc();
    scratch.floats = kj::max(scratch.floats, floatsOf(desc.scratchpad_desc()));
    sizes.add(
        n, Primitive(desc, layouts.engine, layouts.shape.lanes,
               {{DNNL_ARG_DIFF_DST, desc.diff_dst_desc()}, {DNNL_ARG_WEIGHTS, desc.weights_desc()},
                   {DNNL_ARG_DIFF_SRC, desc.diff_src_desc()},
                   {DNNL_ARG_SCRATCHPAD, desc.scratchpad_desc()}}));
  }
};

class Convolution::Layouts::BackwardWeightsTask final: public Task {
public:
  BackwardWeightsTask(Layouts& layouts, Place in, Place dy, Buffer& scratch)
      : layouts(layouts), in(in), dy(dy), scratch(scratch) {}

  void prepare(kj::ArrayPtr<const uint> images) override {
    for (uint n: images) {
      auto desc = layouts.choose<BackwardWeights::primitive_desc>(
          [&](dnnl::algorithm algorithm) { return describe(algorithm, n); });
      layouts.weightsGradient = desc.diff_weights_desc();
      padFloats = kj::max(padFloats, floatsOf(desc.scratchpad_desc()));
      Argument x = {DNNL_ARG_SRC, desc.src_desc()};
      Argument gradient = {DNNL_ARG_DIFF_DST, desc.diff_dst_desc()};
      Argument weights = {DNNL_ARG_DIFF_WEIGHTS, desc.diff_weights_desc()};
      Argument pad = {DNNL_ARG_SCRATCHPAD, desc.scratchpad_desc()};
      uint lanes = layouts.shape.lanes;
      sizes.add(n, layouts.shape.addsBias
                       ? Primitive(desc, layouts.engine, lanes,
                             {x, gradient, weights, pad, {DNNL_ARG_DIFF_BIAS, layouts.bias()}})
                       : Primitive(desc, layouts.engine, lanes, {x, gradient, weights, pad}));
    }
    // After the primitive's scratch memory: a chunk's gradient, before it is added to the sum.
    padFloats = (padFloats + 15) / 16 * 16;
    scratch.floats = padFloats + layouts.sumFloats();
    layouts.arrays.sums->floats = layouts.shape.lanes * layouts.sumFloats();
  }

  void run(const Step& step, const Chunk& chunk) override {
    auto& memory = step.memory;
    float* pad = memory.of(scratch, chunk.lane);
    float* sum = memory.of(*layouts.arrays.sums, 0) + chunk.lane * layouts.sumFloats();
    float* weights = chunk.opening ? sum : pad + padFloats;
    float* x = memory.at(in, chunk);
    float* gradient = memory.at(dy, chunk);
    auto& primitive = sizes.of(chunk.images);
    if (layouts.shape.addsBias) {
      float* bias = weights + floatsOf(layouts.weightsGradient);
      primitive.run(step, chunk.lane, {x, gradient, weights, pad, bias});
    } else {
      primitive.run(step, chunk.lane, {x, gradient, weights, pad});
    }
    if (!chunk.opening) step.kernels.copy(weights, sum, Write::ADD, layouts.sumFloats());
  }

private:
  Layouts& layouts;
  Place in, dy;
  Buffer& scratch;
  Sizes sizes;
  size_t padFloats = 0;

  BackwardWeights::primitive_desc describe(dnnl::algorithm algorithm, uint n) {
    auto& op = layouts.shape.op;
    Dims strides = {op.stride, op.stride}, pads = {op.pad, op.pad};
    auto x = layouts.images(n, layouts.shape.in, layouts.shape.weightsInput);
    auto y = layouts.y(n);
    auto hint = layouts.hint(algorithm, x, n);
    if (!hint) return {};
    if (!layouts.shape.addsBias) {
      BackwardWeights::desc desc(algorithm, x, layouts.weightsGradient, y, strides, pads, pads);
      return {desc, layouts.attributes, layouts.engine, hint, true};
    }
    BackwardWeights::desc desc(
        algorithm, x, layouts.weightsGradient, layouts.bias(), y, strides, pads, pads);
    return {desc, layouts.attributes, layouts.engine, hint, true};
  }
};

class Convolution::Layouts::SumGradient final: public BatchTask {
public:
  SumGradient(Layouts& layouts, uint turn)
      : layouts(layouts),
        repack(layouts.repack(layouts.weightsGradient, layouts.plainWeights())),
        turn(turn) {}

  void run(const Step& step, uint part, uint parts) override {
    if (turn % parts != part) return;
    auto& arrays = layouts.arrays;
    size_t count = layouts.sumFloats();
    float* sum = step.memory.of(*arrays.sums, 0);
    for (uint lane = 1; lane < layouts.shape.lanes; ++lane) {
      step.kernels.copy(sum + lane * count, sum, Write::ADD, count);
    }
    repack.run(step, part, {sum, arrays.weightsGradient});
    if (arrays.bias == nullptr) return;
    size_t bytes = layouts.shape.out.channels * sizeof(float);
    if (layouts.shape.addsBias) {
      memcpy(arrays.biasGradient, sum + floatsOf(layouts.weightsGradient), bytes);
    } else {
      memset(arrays.biasGradient, 0, bytes);
    }
  }

private:
  Layouts& layouts;
  Primitive repack;
  uint turn;
};

InputLayouts inputLayouts(uint channels, uint block) {
  // AVX-512 takes up to three channels plain, where a blocked copy would be mostly padding. AVX2
  // has no forward code at all for blocks that are not full, and for the weights takes three plain
  // and other numbers blocked.
  if (block == 16) {
    auto layout = channels <= 3 ? Layout::PLAIN : Layout::BLOCKED;
    return {layout, layout};
  }
  return {channels < block ? Layout::PLAIN : Layout::BLOCKED,
      channels == 3 ? Layout::PLAIN : Layout::BLOCKED};
}

Convolution::Convolution(ConvolutionShape shape, ConvolutionArrays arrays, dnnl_engine_t engine)
    : layouts(kj::heap<Layouts>(shape, arrays, engine)) {}
Convolution::~Convolution() noexcept(false) {}

kj::Own<Task> Convolution::forward(Place x, Place y, Buffer& scratch) {
  return kj::heap<Layouts::ForwardTask>(*layouts, x, y, scratch);
}

kj::Own<Task> Convolution::backwardWeights(Place x, Place dy, Buffer& scratch) {
  return kj::heap<Layouts::BackwardWeightsTask>(*layouts, x, dy, scratch);
}

kj::Own<Task> Convolution::backwardData(Place dy, Place dx, Write write, Buffer& scratch) {
  return kj::heap<Layouts::BackwardDataTask>(*layouts, dy, dx, write, scratch);
}

bool Convolution::canAdd() const {
  return layouts->pointwise();
}

kj::Own<BatchTask> Convolution::packForward(uint turn) {
  auto& arrays = layouts->arrays;
  auto primitive = layouts->repack(layouts->plainWeights(), layouts->forwardWeights);
  return kj::heap<Pack>(kj::mv(primitive), arrays.weights, *arrays.forwardWeights, turn);
}

kj::Own<BatchTask> Convolution::packBackward(uint turn) {
  auto& arrays = layouts->arrays;
  auto plain = layouts->plainWeights();
  if (layouts->pointwise()) plain = plain.permute_axes({1, 0, 2, 3});
  auto primitive = layouts->repack(plain, layouts->backwardWeights);
  return kj::heap<Pack>(kj::mv(primitive), arrays.weights, *arrays.backwardWeights, turn);
}

kj::Own<BatchTask> Convolution::sumGradient(uint turn) {
  return kj::heap<Layouts::SumGradient>(*layouts, turn);
}

kj::ArrayPtr<const kj::String> Convolution::implementations() const {
  return layouts->implementations;
}

}  // namespace nn::cpu
