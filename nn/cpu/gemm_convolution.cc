#include "nn/cpu/gemm_convolution.h"

#include <kj/debug.h>
#include <string.h>

#include "nn/cpu/sgemm.h"

namespace nn::cpu {
namespace {

// The floats in the windows of a strip. They take a quarter of the smallest second-level cache of a
// CPU with AVX-512 (1 MiB), so that they stay in the cache together with the weights.
constexpr size_t STRIP_FLOATS = 64 * 1024;

// Let there be C channels, K filters and kernel² = T places in a window. A row of `windows` has T·C
// floats. A row of `pixels`, of the output or its gradient, has K floats:
//   y = windows · w'      dw = dy' · windows      windows of dx = dy · w
// The weights are stored as w' (T·C × K) for the first product, and as w (K × T·C) for the last.
class Gemm final: public Convolution {
public:
  Gemm(ConvolutionShape shape, ConvolutionArrays arrays)
      : shape(shape),
        arrays(arrays),
        filters(shape.out.channels),
        channels(shape.in.channels),
        places(shape.op.kernel * shape.op.kernel),
        rowFloats(places * channels),
        weightFloats(filters * rowFloats),
        outPixels(size_t(shape.out.height) * shape.out.width),
        windows{.inHeight = shape.in.height,
            .inWidth = shape.in.width,
            .outHeight = shape.out.height,
            .outWidth = shape.out.width,
            .kernel = shape.op.kernel,
            .stride = shape.op.stride,
            .pad = shape.op.pad},
        pixels{.inHeight = shape.out.height,
            .inWidth = shape.out.width,
            .outHeight = shape.out.height,
            .outWidth = shape.out.width,
            .kernel = 1,
            .stride = 1,
            .pad = 0} {}

  InputLayouts inputLayouts() const override { return {Layout::BLOCKED, Layout::BLOCKED}; }
  kj::Own<Task> forward(Place x, Place y, Buffer& scratch) override;
  kj::Own<Task> backwardWeights(Place x, Place dy, Buffer& scratch) override;
  kj::Own<Task> backwardData(Place dy, Place dx, Write write, Buffer& scratch) override;
  bool canAdd() const override { return true; }
  kj::Own<BatchTask> packForward(uint turn) override;
  kj::Own<BatchTask> packBackward(uint turn) override;
  kj::Own<BatchTask> sumGradient(uint turn) override;
  kj::Array<kj::String> implementations() const override {
    auto names = kj::heapArrayBuilder<kj::String>(1);
    names.add(kj::str("sgemm"));
    return names.finish();
  }

private:
  const ConvolutionShape shape;
  const ConvolutionArrays arrays;
  const size_t filters, channels, places, rowFloats, weightFloats, outPixels;
  const Window windows;
  const Window pixels;

  // The size of the sums of a lane. Those of the bias follow those of the weights.
  size_t sumFloats() const { return weightFloats + (shape.addsBias ? filters : 0); }

  class StripTask;
  class ForwardTask;
  class BackwardWeightsTask;
  class BackwardDataTask;

  // Calls visit(place of the row, place of the transposed matrix) for each of the plain weights,
  // K × C × T, in their order.
  template <typename Visit>
  void eachWeight(Visit&& visit) const {
    for (size_t k = 0; k < filters; ++k) {
      for (size_t c = 0; c < channels; ++c) {
        for (size_t t = 0; t < places; ++t) {
          size_t place = t * channels + c;
          visit(k * rowFloats + place, place * filters + k);
        }
      }
    }
  }
};

// Goes through the output's pixels of a chunk strip by strip.
class Gemm::StripTask: public Task {
public:
  StripTask(Gemm& gemm, Buffer& scratch): gemm(gemm), scratch(scratch) {}

  void prepare(kj::ArrayPtr<const uint> images) override {
    size_t most = 0;
    for (uint n: images) most = kj::max(most, n * gemm.outPixels);
    stripMax = kj::min(kj::max(STRIP_FLOATS / gemm.rowFloats, size_t(16)), most);
    scratch.values = windowFloats() + roundUp(stripMax * gemm.filters + gemm.shape.block);
  }

  void run(const Step& step, const Chunk& chunk) override {
    size_t count = chunk.images * gemm.outPixels;
    float* rows = step.memory.floatsOf(scratch, chunk.lane);
    for (size_t begin = 0; begin < count; begin += stripMax) {
      Strip strip = {.begin = begin,
          .end = kj::min(begin + stripMax, count),
          .windows = rows,
          .pixels = rows + windowFloats()};
      run(step, chunk, strip);
    }
  }

protected:
  // Pixels counted over the images of the chunk, and memory for their rows.
  struct Strip {
    size_t begin, end;
    float* windows;
    float* pixels;

    size_t size() const { return end - begin; }
  };
  Gemm& gemm;
  Buffer& scratch;

  virtual void run(const Step& step, const Chunk& chunk, const Strip& strip) = 0;

  // Copy between the images in `place` and rows.
  void gather(const Step& step, const Chunk& chunk, Place place, const Window& window,
      size_t channels, const Strip& strip, float* rows) {
    byte* images = step.memory.at(place, chunk);
    size_t rowFloats = window.kernel * window.kernel * channels;
    each(strip, [&](size_t n, size_t begin, size_t end, size_t row) {
      step.kernelsFor(place).gatherWindows(
          images + n * place.stride_bytes(), window, channels, begin, end, rows + row * rowFloats);
    });
  }
  void scatter(const Step& step, const Chunk& chunk, const float* rows, const Window& window,
      size_t channels, const Strip& strip, Place place) {
    scatterTo(step.kernelsFor(place), step.memory.at(place, chunk), place.stride_bytes(), rows,
        window, channels, strip);
  }
  void scatterTo(const ValueKernels& kernels, byte* images, size_t stride_bytes, const float* rows,
      const Window& window, size_t channels, const Strip& strip) {
    size_t rowFloats = window.kernel * window.kernel * channels;
    each(strip, [&](size_t n, size_t begin, size_t end, size_t row) {
      kernels.scatterWindows(
          rows + row * rowFloats, window, channels, begin, end, images + n * stride_bytes);
    });
  }
  static void clear(const Step& step, const Chunk& chunk, Place place, Extent extent) {
    byte* image = step.memory.at(place, chunk);
    for (uint n = 0; n < chunk.images; ++n, image += place.stride_bytes()) {
      memset(image, 0, extent.values() * bytesOf(place.element()));
    }
  }

private:
  size_t stripMax = 0;

  static size_t roundUp(size_t floats) { return (floats + 15) / 16 * 16; }
  // The kernels may touch one block after the rows.
  size_t windowFloats() const { return roundUp(stripMax * gemm.rowFloats + gemm.shape.block); }

  // Calls `work` with each image that has pixels in the strip, these pixels, and the strip's row
  // where they begin.
  template <typename Work>
  void each(const Strip& strip, Work&& work) const {
    for (size_t at = strip.begin; at < strip.end;) {
      size_t n = at / gemm.outPixels, begin = at % gemm.outPixels;
      size_t end = kj::min(gemm.outPixels, begin + (strip.end - at));
      work(n, begin, end, at - strip.begin);
      at += end - begin;
    }
  }
};

class Gemm::ForwardTask final: public StripTask {
public:
  ForwardTask(Gemm& gemm, Place x, Place y, Buffer& scratch): StripTask(gemm, scratch), x(x), y(y) {
    gemm.arrays.forwardWeights->values = gemm.weightFloats;
  }

  void run(const Step& step, const Chunk& chunk) override {
    clear(step, chunk, y, Extent(gemm.shape.out, gemm.shape.block));
    StripTask::run(step, chunk);
  }

protected:
  void run(const Step& step, const Chunk& chunk, const Strip& strip) override {
    gather(step, chunk, x, gemm.windows, gemm.channels, strip, strip.windows);
    bool addsBias = gemm.shape.addsBias;
    const float* bias = gemm.arrays.biasIn(step.memory, gemm.weightFloats);
    for (size_t i = 0; addsBias && i < strip.size(); ++i) {
      memcpy(strip.pixels + i * gemm.filters, bias, gemm.filters * sizeof(float));
    }
    multiply(strip.size(), gemm.filters, gemm.rowFloats, {'N', strip.windows, gemm.rowFloats},
        {'N', step.memory.floatsOf(*gemm.arrays.forwardWeights, 0), gemm.filters}, addsBias ? 1 : 0,
        strip.pixels, gemm.filters);
    scatter(step, chunk, strip.pixels, gemm.pixels, gemm.filters, strip, y);
  }

private:
  Place x, y;
};

class Gemm::BackwardWeightsTask final: public StripTask {
public:
  BackwardWeightsTask(Gemm& gemm, Place x, Place dy, Buffer& scratch)
      : StripTask(gemm, scratch), x(x), dy(dy) {
    gemm.arrays.sums->values = gemm.shape.lanes * gemm.sumFloats();
  }

protected:
  void run(const Step& step, const Chunk& chunk, const Strip& strip) override {
    gather(step, chunk, x, gemm.windows, gemm.channels, strip, strip.windows);
    gather(step, chunk, dy, gemm.pixels, gemm.filters, strip, strip.pixels);
    float* sum = step.memory.floatsOf(*gemm.arrays.sums, 0) + chunk.lane * gemm.sumFloats();
    bool isFirst = chunk.opening && strip.begin == 0;
    multiply(gemm.filters, gemm.rowFloats, strip.size(), {'T', strip.pixels, gemm.filters},
        {'N', strip.windows, gemm.rowFloats}, isFirst ? 0 : 1, sum, gemm.rowFloats);
    if (!gemm.shape.addsBias) return;
    for (size_t i = 0; i < strip.size(); ++i) {
      step.kernels.floats.copy(strip.pixels + i * gemm.filters, sum + gemm.weightFloats,
          isFirst && i == 0 ? Write::SET : Write::ADD, gemm.filters);
    }
  }

private:
  Place x, dy;
};

class Gemm::BackwardDataTask final: public StripTask {
public:
  BackwardDataTask(Gemm& gemm, Place dy, Place dx, Write write, Buffer& scratch)
      : StripTask(gemm, scratch), dy(dy), dx(dx), write(write) {
    gemm.arrays.backwardWeights->values = gemm.weightFloats;
  }

  void prepare(kj::ArrayPtr<const uint> images) override {
    StripTask::prepare(images);
    sumsAt = scratch.values;
    for (uint n: images) scratch.values = kj::max(scratch.values, sumsAt + sumsOf(n));
  }

  void run(const Step& step, const Chunk& chunk) override {
    if (dx.element() == Element::FLOAT32) {
      if (write == Write::SET) clear(step, chunk, dx, extent());
      StripTask::run(step, chunk);
      return;
    }
    float* sums = sumsIn(step, chunk);
    memset(sums, 0, sumsOf(chunk.images) * sizeof(float));
    StripTask::run(step, chunk);
    byte* to = step.memory.at(dx, chunk);
    for (uint n = 0; n < chunk.images; ++n, to += dx.stride_bytes()) {
      step.kernelsFor(dx).round(sums + n * extent().values(), to, write, extent().values());
    }
  }

protected:
  void run(const Step& step, const Chunk& chunk, const Strip& strip) override {
    gather(step, chunk, dy, gemm.pixels, gemm.filters, strip, strip.pixels);
    multiply(strip.size(), gemm.rowFloats, gemm.filters, {'N', strip.pixels, gemm.filters},
        {'N', step.memory.floatsOf(*gemm.arrays.backwardWeights, 0), gemm.rowFloats}, 0,
        strip.windows, gemm.rowFloats);
    if (dx.element() == Element::FLOAT32) {
      scatter(step, chunk, strip.windows, gemm.windows, gemm.channels, strip, dx);
    } else {
      scatterTo(step.kernels.floats, reinterpret_cast<byte*>(sumsIn(step, chunk)),
          extent().values() * sizeof(float), strip.windows, gemm.windows, gemm.channels, strip);
    }
  }

private:
  Place dy, dx;
  Write write;
  size_t sumsAt = 0;

  Extent extent() const { return Extent(gemm.shape.in, gemm.shape.block); }

  // Windows overlap. If values are not floats, the sums are made in floats, after the rows in
  // scratch memory, and rounded once.
  size_t sumsOf(uint images) const {
    return dx.element() == Element::FLOAT32 ? 0 : images * extent().values();
  }
  float* sumsIn(const Step& step, const Chunk& chunk) const {
    return step.memory.floatsOf(scratch, chunk.lane) + sumsAt;
  }
};

kj::Own<Task> Gemm::forward(Place x, Place y, Buffer& scratch) {
  return kj::heap<ForwardTask>(*this, x, y, scratch);
}

kj::Own<Task> Gemm::backwardWeights(Place x, Place dy, Buffer& scratch) {
  return kj::heap<BackwardWeightsTask>(*this, x, dy, scratch);
}

kj::Own<Task> Gemm::backwardData(Place dy, Place dx, Write write, Buffer& scratch) {
  return kj::heap<BackwardDataTask>(*this, dy, dx, write, scratch);
}

kj::Own<BatchTask> Gemm::packForward(uint turn) {
  return newWholeTask(turn, [this](const Step& step, uint) {
    const float* from = arrays.weightsIn(step.memory);
    float* packed = step.memory.floatsOf(*arrays.forwardWeights, 0);
    eachWeight([&](size_t, size_t transposed) { packed[transposed] = *from++; });
  });
}

kj::Own<BatchTask> Gemm::packBackward(uint turn) {
  return newWholeTask(turn, [this](const Step& step, uint) {
    const float* from = arrays.weightsIn(step.memory);
    float* packed = step.memory.floatsOf(*arrays.backwardWeights, 0);
    eachWeight([&](size_t place, size_t) { packed[place] = *from++; });
  });
}

kj::Own<BatchTask> Gemm::sumGradient(uint turn) {
  return newWholeTask(turn, [this](const Step& step, uint) {
    auto sum = sumLanes(step, shape, arrays, weightFloats, sumFloats());
    float* gradient = arrays.weightsGradient;
    eachWeight([&](size_t place, size_t) { *gradient++ = sum[place]; });
  });
}

}  // namespace

kj::Own<Convolution> makeGemmConvolution(ConvolutionShape shape, ConvolutionArrays arrays) {
  return kj::heap<Gemm>(shape, arrays);
}

}  // namespace nn::cpu
