#include "nn/cpu/plane_convolution.h"

#include <kj/debug.h>
#include <string.h>

namespace nn::cpu {
namespace {

class PlaneConvolution final: public Convolution {
public:
  PlaneConvolution(ConvolutionShape shape, ConvolutionArrays arrays)
      : shape(shape),
        arrays(arrays),
        filters(Extent(shape.out, shape.block).blocks * shape.block),
        places(placesOf(shape)),
        planes{.rowFloats = paddedWidth(),
            .stride = shape.op.stride,
            .outHeight = shape.out.height,
            .outWidth = shape.out.width,
            .blocks = filters / shape.block,
            .taps = places.size(),
            .places = places.begin()} {}

  InputLayouts inputLayouts() const override { return {Layout::PLAIN, Layout::PLAIN}; }
  kj::Own<Task> forward(Place x, Place y, Buffer& scratch) override;
  kj::Own<Task> backwardWeights(Place x, Place dy, Buffer& scratch) override;
  kj::Own<Task> backwardData(Place, Place, Write, Buffer&) override {
    KJ_FAIL_REQUIRE("the gradient of plain images is not computed");
  }
  bool canAdd() const override { return false; }
  kj::Own<BatchTask> packForward(uint turn) override;
  kj::Own<BatchTask> packBackward(uint turn) override {
    return newWholeTask(turn, [](const Step&, uint) {});
  }
  kj::Own<BatchTask> sumGradient(uint turn) override;
  kj::Array<kj::String> implementations() const override {
    auto names = kj::heapArrayBuilder<kj::String>(1);
    names.add(kj::str("planes"));
    return names.finish();
  }

private:
  const ConvolutionShape shape;
  const ConvolutionArrays arrays;
  const size_t filters;  // with padding
  const kj::Array<uint32_t> places;
  const Planes planes;

  size_t paddedWidth() const { return shape.in.width + 2 * shape.op.pad; }
  size_t paddedFloats() const {
    return shape.in.channels * (shape.in.height + 2 * shape.op.pad) * paddedWidth();
  }
  size_t weightFloats() const { return planes.taps * filters; }
  // The size of the sums of a lane. Those of the bias follow those of the weights.
  size_t sumFloats() const { return weightFloats() + filters; }

  class ImageTask;
  class ForwardTask;
  class BackwardWeightsTask;

  static kj::Array<uint32_t> placesOf(const ConvolutionShape& shape) {
    uint kernel = shape.op.kernel;
    uint width = shape.in.width + 2 * shape.op.pad, height = shape.in.height + 2 * shape.op.pad;
    auto places = kj::heapArrayBuilder<uint32_t>(shape.in.channels * kernel * kernel);
    for (uint c = 0; c < shape.in.channels; ++c) {
      for (uint u = 0; u < kernel; ++u) {
        for (uint v = 0; v < kernel; ++v) places.add((c * height + u) * width + v);
      }
    }
    return places.finish();
  }
};

// Goes through the images of a chunk.
class PlaneConvolution::ImageTask: public Task {
public:
  ImageTask(PlaneConvolution& own, Place x, Place y, Buffer& scratch)
      : own(own), x(x), y(y), scratch(scratch) {}

  void prepare(kj::ArrayPtr<const uint>) override {
    if (own.shape.op.pad > 0) scratch.values = own.paddedFloats();
  }

  void run(const Step& step, const Chunk& chunk) override {
    const float* image = step.memory.floatsAt(x, chunk);
    float* output = step.memory.floatsAt(y, chunk);
    for (uint n = 0; n < chunk.images; ++n, image += x.stride(), output += y.stride()) {
      run(step, chunk, padded(step, chunk, image), output);
    }
  }

protected:
  PlaneConvolution& own;

  virtual void run(const Step& step, const Chunk& chunk, const float* image, float* output) = 0;

private:
  Place x, y;
  Buffer& scratch;

  // Returns the image with zeros around it.
  const float* padded(const Step& step, const Chunk& chunk, const float* image) const {
    auto& in = own.shape.in;
    uint pad = own.shape.op.pad;
    if (pad == 0) return image;
    float* begin = step.memory.floatsOf(scratch, chunk.lane);
    memset(begin, 0, own.paddedFloats() * sizeof(float));
    float* to = begin;
    for (uint c = 0; c < in.channels; ++c) {
      to += pad * own.paddedWidth() + pad;
      for (uint row = 0; row < in.height; ++row, image += in.width, to += own.paddedWidth()) {
        memcpy(to, image, in.width * sizeof(float));
      }
      to += pad * own.paddedWidth() - pad;
    }
    return begin;
  }
};

class PlaneConvolution::ForwardTask final: public ImageTask {
public:
  ForwardTask(PlaneConvolution& own, Place x, Place y, Buffer& scratch)
      : ImageTask(own, x, y, scratch) {
    // The bias follows the weights.
    own.arrays.forwardWeights->values = own.weightFloats() + own.filters;
  }

protected:
  void run(const Step& step, const Chunk&, const float* image, float* output) override {
    const float* weights = step.memory.floatsOf(*own.arrays.forwardWeights, 0);
    const float* bias = own.shape.addsBias ? weights + own.weightFloats() : nullptr;
    step.kernels.planesForward(image, own.planes, weights, bias, output);
  }
};

class PlaneConvolution::BackwardWeightsTask final: public ImageTask {
public:
  BackwardWeightsTask(PlaneConvolution& own, Place x, Place dy, Buffer& scratch)
      : ImageTask(own, x, dy, scratch) {
    own.arrays.sums->values = own.shape.lanes * own.sumFloats();
  }

  void run(const Step& step, const Chunk& chunk) override {
    if (chunk.opening) memset(sumsOf(step, chunk), 0, own.sumFloats() * sizeof(float));
    ImageTask::run(step, chunk);
  }

protected:
  void run(const Step& step, const Chunk& chunk, const float* image, float* gradient) override {
    float* sums = sumsOf(step, chunk);
    float* biasSums = own.shape.addsBias ? sums + own.weightFloats() : nullptr;
    step.kernels.planesAccumulate(image, gradient, own.planes, sums, biasSums);
  }

private:
  float* sumsOf(const Step& step, const Chunk& chunk) const {
    return step.memory.floatsOf(*own.arrays.sums, 0) + chunk.lane * own.sumFloats();
  }
};

kj::Own<Task> PlaneConvolution::forward(Place x, Place y, Buffer& scratch) {
  return kj::heap<ForwardTask>(*this, x, y, scratch);
}

kj::Own<Task> PlaneConvolution::backwardWeights(Place x, Place dy, Buffer& scratch) {
  return kj::heap<BackwardWeightsTask>(*this, x, dy, scratch);
}

kj::Own<BatchTask> PlaneConvolution::packForward(uint turn) {
  return newWholeTask(turn, [this](const Step& step, uint) {
    const float* from = arrays.weightsIn(step.memory);
    float* packed = step.memory.floatsOf(*arrays.forwardWeights, 0);
    size_t count = shape.out.channels;
    memset(packed, 0, (weightFloats() + filters) * sizeof(float));
    for (size_t k = 0; k < count; ++k) {
      for (size_t t = 0; t < planes.taps; ++t) packed[t * filters + k] = *from++;
    }
    if (!shape.addsBias) return;
    const float* bias = arrays.biasIn(step.memory, planes.taps * count);
    memcpy(packed + weightFloats(), bias, count * sizeof(float));
  });
}

kj::Own<BatchTask> PlaneConvolution::sumGradient(uint turn) {
  return newWholeTask(turn, [this](const Step& step, uint) {
    auto sums = sumLanes(step, shape, arrays, weightFloats(), sumFloats());
    float* gradient = arrays.weightsGradient;
    for (size_t k = 0; k < shape.out.channels; ++k) {
      for (size_t t = 0; t < planes.taps; ++t) *gradient++ = sums[t * filters + k];
    }
  });
}

}  // namespace

kj::Own<Convolution> makePlaneConvolution(ConvolutionShape shape, ConvolutionArrays arrays) {
  KJ_REQUIRE(shape.canBePlain && !shape.inputTrains && shape.element == Element::FLOAT32);
  return kj::heap<PlaneConvolution>(shape, arrays);
}

}  // namespace nn::cpu
