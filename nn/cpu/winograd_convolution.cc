#include "nn/cpu/winograd_convolution.h"

#include <string.h>

#include "nn/cpu/winograd_tiles.h"

namespace nn::cpu {
namespace {

const Winograd& kernelsOf(const ConvolutionShape& shape) {
  auto& tables = shape.block == 16 ? AVX512_WINOGRAD : AVX2_WINOGRAD;
  return tables[shape.op.kernel == 5];
}

const WinogradImages& imagesOf(const ConvolutionShape& shape) {
  auto& tables = shape.element == Element::BFLOAT16 ? AVX512_BF16_WINOGRAD_IMAGES
                 : shape.block == 16                ? AVX512_WINOGRAD_IMAGES
                                                    : AVX2_WINOGRAD_IMAGES;
  return tables[shape.op.kernel == 5];
}

// One convolution from images to images: the forward pass, or the gradient of the input as a
// convolution of the output's with the weights turned and transposed. (TransposedTask does not turn
// them.)
struct WinogradPass {
  Shape from, to;
  uint pad;
  uint points;
  Extent fromExtent, toExtent;
  Tiling tiling;

  WinogradPass(Shape from, Shape to, uint pad, uint block, const Winograd& kernels)
      : from(from),
        to(to),
        pad(pad),
        points(kernels.side * kernels.side),
        fromExtent(from, block),
        toExtent(to, block),
        tiling(to.height, to.width, kernels) {}

  size_t inputs() const { return fromExtent.blocks * fromExtent.block; }
  size_t outputs() const { return toExtent.blocks * toExtent.block; }
  // The distance between points of the transformed weights. It is one cache line longer than
  // needed, because otherwise all points of a filter might fall into the same few sets of a cache.
  size_t pointStride() const { return inputs() * outputs() + 16; }
  size_t weightFloats() const { return points * pointStride(); }
};

// Memory for the transformed tiles of a group. winograd.h describes the layout.
struct TileArray {
  float* begin;
  size_t channels, blocks, slots, panel, block;

  size_t panelFloats() const { return blocks * slots * panel * block; }
  float* tile(size_t i) const { return begin + i / panel * panelFloats() + i % panel * block; }
  float* point(size_t p) const { return begin + p * panel * block; }
};

class WinogradConvolution final: public Convolution {
public:
  WinogradConvolution(ConvolutionShape shape, ConvolutionArrays arrays)
      : shape(shape),
        arrays(arrays),
        taps(shape.op.kernel * shape.op.kernel),
        kernels(kernelsOf(shape)),
        images(imagesOf(shape)),
        ahead(shape.in, shape.out, shape.op.pad, shape.block, kernels),
        back(shape.out, shape.in, shape.op.kernel - 1 - shape.op.pad, shape.block, kernels),
        transposes(shape.element == Element::FLOAT32 &&
                   4 * ahead.tiling.tiles() < 3 * back.tiling.tiles()) {}

  InputLayouts inputLayouts() const override { return {Layout::BLOCKED, Layout::BLOCKED}; }
  kj::Own<Task> forward(Place x, Place y, Buffer& scratch) override;
  kj::Own<Task> backwardWeights(Place x, Place dy, Buffer& scratch) override;
  kj::Own<Task> backwardData(Place dy, Place dx, Write write, Buffer& scratch) override;
  bool canAdd() const override { return true; }
  kj::Own<BatchTask> packForward(uint turn) override;
  kj::Own<BatchTask> packBackward(uint turn) override;
  kj::Own<BatchTask> sumGradient(uint) override;
  kj::Array<kj::String> implementations() const override {
    auto names = kj::heapArrayBuilder<kj::String>(1);
    names.add(kj::str("winograd"));
    return names.finish();
  }

private:
  const ConvolutionShape shape;
  const ConvolutionArrays arrays;
  const size_t taps;  // of a filter
  const Winograd& kernels;
  const WinogradImages& images;
  const WinogradPass ahead, back;
  // Whether the gradient of the input is computed from the tiles of the output, whose patches
  // overlap and are added up: see TransposedTask. True if the output has less than 3/4 of the
  // input's tiles. False for bfloat16s, because each of these additions would round.
  const bool transposes;

  // The size of the sums of a lane. Those of the bias follow those of the weights.
  size_t sumFloats() const { return ahead.weightFloats() + ahead.outputs(); }

  class GroupTask;
  class ImagesTask;
  class BackwardWeightsTask;
  class TransposedTask;

  void pack(const Step& step, const WinogradPass& direction, Buffer& to) const;
  void sumPart(const Step& step, uint part, uint parts) const;
};

// Goes through the tiles of a chunk group by group.
class WinogradConvolution::GroupTask: public Task {
public:
  GroupTask(WinogradConvolution& own, const WinogradPass& direction, Buffer& scratch)
      : own(own), direction(direction), scratch(scratch) {}

  void prepare(kj::ArrayPtr<const uint> sizes) override {
    for (uint n: sizes) panelMax = kj::max(panelMax, direction.tiling.panelMax(n));
    size_t panelFloats = inputsAt(nullptr).panelFloats() + outputsAt(nullptr).panelFloats();
    scratch.values = panelMax * panelFloats;
  }

  void run(const Step& step, const Chunk& chunk) override {
    TileArray inputs = inputsAt(step.memory.floatsOf(scratch, chunk.lane));
    TileArray outputs = outputsAt(inputs.begin + panelMax * inputs.panelFloats());
    uint groups = direction.tiling.groups(chunk.images);
    for (uint i = 0; i < groups; ++i) {
      run(step, chunk, direction.tiling.group(chunk.images, i), inputs, outputs);
    }
  }

protected:
  WinogradConvolution& own;
  const WinogradPass& direction;

  virtual void run(const Step& step, const Chunk& chunk, const TileGroup& group,
      const TileArray& inputs, const TileArray& outputs) = 0;

  void transformInput(const Step& step, const Chunk& chunk, const TileGroup& group, Place x,
      const TileArray& inputs) {
    auto& from = direction.from;
    const byte* images = step.memory.at(x, chunk);
    direction.tiling.eachTile(group, [&](Tile tile, size_t i, size_t image) {
      tile.row -= direction.pad;
      tile.column -= direction.pad;
      own.images.transformInput(images + image * x.stride_bytes(), from.height, from.width, tile,
          inputs.blocks, inputs.tile(i));
    });
  }

private:
  Buffer& scratch;
  size_t panelMax = 0;

  TileArray inputsAt(float* begin) const { return tilesAt(begin, direction.fromExtent); }
  TileArray outputsAt(float* begin) const { return tilesAt(begin, direction.toExtent); }
  TileArray tilesAt(float* begin, const Extent& extent) const {
    return {.begin = begin,
        .channels = extent.channels,
        .blocks = extent.blocks,
        .slots = own.kernels.slots,
        .panel = own.kernels.panel,
        .block = extent.block};
  }
};

// From images to images, in one of the two directions.
class WinogradConvolution::ImagesTask final: public GroupTask {
public:
  ImagesTask(WinogradConvolution& own, const WinogradPass& direction, Place x, Place y, Write write,
      Buffer& weights, bool addsBias, Buffer& scratch)
      : GroupTask(own, direction, scratch),
        x(x),
        y(y),
        write(write),
        weights(weights),
        addsBias(addsBias) {
    // The bias follows the weights.
    weights.values = direction.weightFloats() + direction.outputs();
  }

protected:
  void run(const Step& step, const Chunk& chunk, const TileGroup& group, const TileArray& inputs,
      const TileArray& outputs) override {
    transformInput(step, chunk, group, x, inputs);
    const float* u = step.memory.floatsOf(weights, 0);
    const float* bias = addsBias ? u + direction.weightFloats() : nullptr;
    direction.tiling.eachPoint(group, [&](size_t p, kj::ArrayPtr<const PanelRun> runs) {
      own.kernels.multiply(inputs.point(p), u + p * direction.pointStride(), outputs.point(p),
          runs.begin(), runs.size(), inputs.channels, outputs.blocks);
    });
    auto& to = direction.to;
    byte* images = step.memory.at(y, chunk);
    direction.tiling.eachTile(group, [&](const Tile& tile, size_t i, size_t image) {
      own.images.transformOutput(outputs.tile(i), tile, outputs.blocks, bias, write,
          images + image * y.stride_bytes(), to.height, to.width);
    });
  }

private:
  Place x, y;
  Write write;
  Buffer& weights;
  bool addsBias;
};

class WinogradConvolution::BackwardWeightsTask final: public GroupTask {
public:
  BackwardWeightsTask(WinogradConvolution& own, Place x, Place dy, Buffer& scratch)
      : GroupTask(own, own.ahead, scratch), x(x), dy(dy) {
    own.arrays.sums->values = own.shape.lanes * own.sumFloats();
  }

  void run(const Step& step, const Chunk& chunk) override {
    if (chunk.opening) memset(sumsOf(step, chunk), 0, own.sumFloats() * sizeof(float));
    GroupTask::run(step, chunk);
  }

protected:
  void run(const Step& step, const Chunk& chunk, const TileGroup& group, const TileArray& inputs,
      const TileArray& outputs) override {
    transformInput(step, chunk, group, x, inputs);
    float* sums = sumsOf(step, chunk);
    float* biasSums = own.shape.addsBias ? sums + direction.weightFloats() : nullptr;
    auto& to = direction.to;
    const byte* images = step.memory.at(dy, chunk);
    direction.tiling.eachTile(group, [&](const Tile& tile, size_t i, size_t image) {
      own.images.transformGradient(images + image * dy.stride_bytes(), to.height, to.width, tile,
          outputs.blocks, outputs.tile(i), biasSums);
    });
    direction.tiling.eachPoint(group, [&](size_t p, kj::ArrayPtr<const PanelRun> runs) {
      own.kernels.accumulate(inputs.point(p), outputs.point(p), sums + p * direction.pointStride(),
          runs.begin(), runs.size(), inputs.channels, outputs.blocks);
    });
  }

private:
  Place x, dy;

  float* sumsOf(const Step& step, const Chunk& chunk) {
    return step.memory.floatsOf(*own.arrays.sums, 0) + chunk.lane * own.sumFloats();
  }
};

// The gradient of the input: dx = B[(G g G') ⊙ (A dy A')] B', summed over the tiles.
class WinogradConvolution::TransposedTask final: public GroupTask {
public:
  TransposedTask(WinogradConvolution& own, Place dy, Place dx, Write write, Buffer& scratch)
      : GroupTask(own, own.ahead, scratch), dy(dy), dx(dx), write(write) {
    own.arrays.backwardWeights->values = own.back.weightFloats();
  }

  void run(const Step& step, const Chunk& chunk) override {
    if (write == Write::SET) {
      byte* image = step.memory.at(dx, chunk);
      for (uint n = 0; n < chunk.images; ++n, image += dx.stride_bytes()) {
        memset(image, 0, direction.fromExtent.values() * sizeof(float));
      }
    }
    GroupTask::run(step, chunk);
  }

protected:
  void run(const Step& step, const Chunk& chunk, const TileGroup& group, const TileArray& inputs,
      const TileArray& outputs) override {
    auto &from = direction.from, &to = direction.to;
    const byte* gradients = step.memory.at(dy, chunk);
    direction.tiling.eachTile(group, [&](const Tile& tile, size_t i, size_t image) {
      own.images.transformGradient(gradients + image * dy.stride_bytes(), to.height, to.width, tile,
          outputs.blocks, outputs.tile(i), nullptr);
    });
    const float* u = step.memory.floatsOf(*own.arrays.backwardWeights, 0);
    direction.tiling.eachPoint(group, [&](size_t p, kj::ArrayPtr<const PanelRun> runs) {
      own.kernels.multiply(outputs.point(p), u + p * own.back.pointStride(), inputs.point(p),
          runs.begin(), runs.size(), outputs.channels, inputs.blocks);
    });
    byte* images = step.memory.at(dx, chunk);
    direction.tiling.eachTile(group, [&](Tile tile, size_t i, size_t image) {
      tile.row -= direction.pad;
      tile.column -= direction.pad;
      own.images.transformInputBack(inputs.tile(i), tile, inputs.blocks,
          images + image * dx.stride_bytes(), from.height, from.width);
    });
  }

private:
  Place dy, dx;
  Write write;
};

kj::Own<Task> WinogradConvolution::forward(Place x, Place y, Buffer& scratch) {
  return kj::heap<ImagesTask>(
      *this, ahead, x, y, Write::SET, *arrays.forwardWeights, shape.addsBias, scratch);
}

kj::Own<Task> WinogradConvolution::backwardWeights(Place x, Place dy, Buffer& scratch) {
  return kj::heap<BackwardWeightsTask>(*this, x, dy, scratch);
}

kj::Own<Task> WinogradConvolution::backwardData(Place dy, Place dx, Write write, Buffer& scratch) {
  if (transposes) return kj::heap<TransposedTask>(*this, dy, dx, write, scratch);
  return kj::heap<ImagesTask>(*this, back, dy, dx, write, *arrays.backwardWeights, false, scratch);
}

// Transforms plain weights, K × C × taps.
void WinogradConvolution::pack(const Step& step, const WinogradPass& direction, Buffer& to) const {
  bool isAhead = &direction == &ahead;
  const float* plain = arrays.weightsIn(step.memory);
  float* packed = step.memory.floatsOf(to, 0);
  // The distances between inputs and between outputs among the plain weights.
  size_t inStride = isAhead ? taps : taps * direction.to.channels;
  size_t outStride = isAhead ? taps * direction.from.channels : taps;
  size_t inputs = direction.inputs(), block = shape.block;
  bool turns = !isAhead && !transposes;
  for (size_t k = 0; k < direction.toExtent.blocks; ++k) {
    size_t filters = kj::min(block, direction.to.channels - k * block);
    for (size_t c = 0; c < inputs; ++c) {
      size_t place = kernels.weightsPlace(inputs, direction.toExtent.blocks, c, k);
      kernels.transformWeights(plain + c * inStride + k * block * outStride, outStride,
          c < direction.from.channels ? filters : 0, turns, packed + place,
          direction.pointStride());
    }
  }
  if (!isAhead || !shape.addsBias) return;
  size_t count = direction.to.channels, weights = taps * count * direction.from.channels;
  float* bias = packed + direction.weightFloats();
  memcpy(bias, arrays.biasIn(step.memory, weights), count * sizeof(float));
  memset(bias + count, 0, (direction.outputs() - count) * sizeof(float));
}

// Adds the sums of all lanes, in their order, into the flat gradient. Each lane does a part of the
// inputs.
void WinogradConvolution::sumPart(const Step& step, uint part, uint parts) const {
  const float* sums = step.memory.floatsOf(*arrays.sums, 0);
  size_t block = shape.block, channels = ahead.from.channels;
  for (size_t k = 0; k < ahead.toExtent.blocks; ++k) {
    size_t filters = kj::min(block, ahead.to.channels - k * block);
    for (size_t c = channels * part / parts; c < channels * (part + 1) / parts; ++c) {
      size_t place = kernels.weightsPlace(ahead.inputs(), ahead.toExtent.blocks, c, k);
      kernels.gatherWeights(sums + place, sumFloats(), shape.lanes, ahead.pointStride(),
          arrays.weightsGradient + (k * block * channels + c) * taps, channels * taps, filters);
    }
  }
  if (part > 0 || arrays.bias == nullptr) return;
  for (uint k = 0; k < ahead.to.channels; ++k) {
    float sum = 0;
    for (uint lane = 0; shape.addsBias && lane < shape.lanes; ++lane) {
      sum += sums[ahead.weightFloats() + lane * sumFloats() + k];
    }
    arrays.biasGradient[k] = sum;
  }
}

kj::Own<BatchTask> WinogradConvolution::packForward(uint turn) {
  return newWholeTask(
      turn, [this](const Step& step, uint) { pack(step, ahead, *arrays.forwardWeights); });
}

kj::Own<BatchTask> WinogradConvolution::packBackward(uint turn) {
  return newWholeTask(
      turn, [this](const Step& step, uint) { pack(step, back, *arrays.backwardWeights); });
}

kj::Own<BatchTask> WinogradConvolution::sumGradient(uint) {
  return newBatchTask(
      [this](const Step& step, uint part, uint parts) { sumPart(step, part, parts); });
}

}  // namespace

bool isWinogradShape(const ConvolutionShape& shape) {
  auto& op = shape.op;
  return (op.kernel == 3 || op.kernel == 5) && op.stride == 1 && op.pad <= op.kernel / 2;
}

uint64_t winogradWeights_bytes(const ConvolutionShape& shape) {
  uint64_t inputs = Extent(shape.in, shape.block).blocks * shape.block;
  uint64_t outputs = Extent(shape.out, shape.block).blocks * shape.block;
  uint64_t side = kernelsOf(shape).side;
  return side * side * sizeof(float) * inputs * outputs;
}

kj::Own<Convolution> makeWinogradConvolution(ConvolutionShape shape, ConvolutionArrays arrays) {
  KJ_REQUIRE(isWinogradShape(shape), shape.op.kernel, shape.op.stride, shape.op.pad);
  return kj::heap<WinogradConvolution>(shape, arrays);
}

}  // namespace nn::cpu
