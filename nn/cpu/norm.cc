#include "nn/cpu/norm.h"

#include <string.h>

#include <cmath>

namespace nn::cpu {

Channels Norm::channelsIn(const Addresses& memory) const {
  float* array = memory.floatsOf(*channels, 0);
  size_t size = extent.blocks * extent.block;
  return {.mean = array,
      .inverse = array + size,
      .scale = array + 2 * size,
      .shift = array + 3 * size,
      .meanGradient = array + 4 * size,
      .slope = array + 5 * size,
      .gammaGradient = array + 6 * size,
      .betaGradient = array + 7 * size};
}

namespace {

// The blocks that are `part`'s share.
Range shareOf(size_t blocks, uint part, uint parts) {
  return {blocks * part / parts, blocks * (part + 1) / parts};
}

// Where the partial sums of image `n` begin.
float* partialOf(const Addresses& memory, const Norm& norm, const Buffer& partials, size_t n) {
  return memory.floatsOf(partials, 0) + n * norm.extent.blocks * 2 * norm.extent.block;
}

class TakeStatistics final: public Task {
public:
  TakeStatistics(const Norm& norm, Place y): norm(norm), y(y) {}

  void run(const Step& step, const Chunk& chunk) override {
    const byte* image = step.memory.at(y, chunk);
    for (uint n = 0; n < chunk.images; ++n, image += y.stride_bytes()) {
      float* partial = partialOf(step.memory, norm, *norm.statisticsPartials, chunk.first + n);
      step.kernelsFor(y).statistics(image, partial, norm.extent.blocks, norm.extent.pixels);
    }
  }

private:
  const Norm& norm;
  Place y;
};

// Sets what normalises channels [begin, end) of a share.
class SetChannels: public BatchTask {
public:
  explicit SetChannels(const Norm& norm): norm(norm) {}

  void run(const Step& step, uint part, uint parts) final {
    auto share = shareOf(norm.extent.blocks, part, parts);
    auto channels = norm.channelsIn(step.memory);
    for (auto b = share.begin; b < share.end; ++b) {
      size_t begin = b * norm.extent.block;
      size_t end = kj::min(begin + norm.extent.block, size_t(norm.extent.channels));
      runBlock(step, channels, begin, end);
      clear(channels, end, begin + norm.extent.block);
    }
  }

protected:
  const Norm& norm;

  virtual void runBlock(const Step& step, const Channels& channels, size_t begin, size_t end) = 0;

  float biasOf(size_t c) const { return norm.inertBias == nullptr ? 0 : norm.inertBias[c]; }

  void set(const Channels& channels, size_t c, float mean, float variance) {
    float gamma = norm.op.fixedGamma ? 1.0f : norm.gamma[c];
    channels.mean[c] = mean;
    channels.inverse[c] = float(1 / std::sqrt(double(variance) + norm.op.epsilon));
    channels.scale[c] = gamma * channels.inverse[c];
    channels.shift[c] = norm.beta[c] - mean * channels.scale[c];
  }

private:
  // What fills up the last block: else other values that the memory held before would get into the
  // padding of images. The other arrays follow from these.
  static void clear(const Channels& channels, size_t begin, size_t end) {
    for (float* array: {channels.mean, channels.inverse, channels.scale, channels.shift}) {
      memset(array + begin, 0, (end - begin) * sizeof(float));
    }
  }
};

class CombineStatistics final: public SetChannels {
public:
  using SetChannels::SetChannels;

protected:
  void runBlock(const Step& step, const Channels& channels, size_t begin, size_t end) override {
    // `slope` is free until the gradients are combined.
    float* variance = channels.slope;
    size_t stride = norm.extent.blocks * 2 * norm.extent.block;
    const float* partial = step.memory.floatsOf(*norm.statisticsPartials, 0) + 2 * begin;
    step.kernels.combineStatistics(
        partial, norm.images, stride, norm.extent.pixels, channels.mean + begin, variance + begin);
    float momentum = norm.op.momentum;
    for (size_t c = begin; c < end; ++c) {
      set(channels, c, channels.mean[c], variance[c]);
      norm.movingMean[c] =
          momentum * norm.movingMean[c] + (1 - momentum) * (channels.mean[c] + biasOf(c));
      norm.movingVariance[c] = momentum * norm.movingVariance[c] + (1 - momentum) * variance[c];
    }
  }
};

class TakeMoving final: public SetChannels {
public:
  using SetChannels::SetChannels;

protected:
  void runBlock(const Step&, const Channels& channels, size_t begin, size_t end) override {
    for (size_t c = begin; c < end; ++c) {
      set(channels, c, norm.movingMean[c] - biasOf(c), norm.movingVariance[c]);
    }
  }
};

class Normalise final: public Task {
public:
  Normalise(const Norm& norm, Place y, Place out): norm(norm), y(y), out(out) {}

  void run(const Step& step, const Chunk& chunk) override {
    auto channels = norm.channelsIn(step.memory);
    const byte* from = step.memory.at(y, chunk);
    byte* to = step.memory.at(out, chunk);
    for (uint n = 0; n < chunk.images; ++n, from += y.stride_bytes(), to += out.stride_bytes()) {
      step.kernelsFor(y).normalise(
          from, channels, norm.after, to, norm.extent.blocks, norm.extent.pixels);
    }
  }

private:
  const Norm& norm;
  Place y, out;
};

class ReduceGradient final: public Task {
public:
  ReduceGradient(const Norm& norm, Place y, Place gradient): norm(norm), y(y), gradient(gradient) {}

  void run(const Step& step, const Chunk& chunk) override {
    auto channels = norm.channelsIn(step.memory);
    const byte* value = step.memory.at(y, chunk);
    const byte* g = step.memory.at(gradient, chunk);
    for (uint n = 0; n < chunk.images;
         ++n, value += y.stride_bytes(), g += gradient.stride_bytes()) {
      float* partial = partialOf(step.memory, norm, *norm.gradientPartials, chunk.first + n);
      step.kernelsFor(y).reduceGradient(
          value, g, channels, norm.after, partial, norm.extent.blocks, norm.extent.pixels);
    }
  }

private:
  const Norm& norm;
  Place y, gradient;
};

class CombineGradient final: public BatchTask {
public:
  explicit CombineGradient(const Norm& norm): norm(norm) {}

  void run(const Step& step, uint part, uint parts) override {
    auto share = shareOf(norm.extent.blocks, part, parts);
    auto channels = norm.channelsIn(step.memory);
    size_t B = norm.extent.block;
    float values = float(norm.images) * float(norm.extent.pixels);
    for (auto b = share.begin; b < share.end; ++b) {
      const float* partial = step.memory.floatsOf(*norm.gradientPartials, 0) + 2 * b * B;
      // The gamma's gradient gets the sum of g·(y - mean) first.
      step.kernels.sumPartials(partial, norm.images, norm.extent.blocks * 2 * B,
          channels.betaGradient + b * B, channels.gammaGradient + b * B);
      for (size_t c = b * B; c < (b + 1) * B; ++c) {
        channels.gammaGradient[c] *= channels.inverse[c];
        channels.meanGradient[c] = channels.betaGradient[c] / values;
        channels.slope[c] = channels.gammaGradient[c] * channels.inverse[c] / values;
      }
    }
  }

private:
  const Norm& norm;
};

class ExportGradient final: public WholeTask {
public:
  explicit ExportGradient(const Norm& norm): WholeTask(0), norm(norm) {}

protected:
  void runWhole(const Step& step, uint) override {
    auto channels = norm.channelsIn(step.memory);
    size_t bytes = norm.extent.channels * sizeof(float);
    memcpy(norm.betaGradient, channels.betaGradient, bytes);
    if (norm.op.fixedGamma) {
      memset(norm.gammaGradient, 0, bytes);
    } else {
      memcpy(norm.gammaGradient, channels.gammaGradient, bytes);
    }
  }

private:
  const Norm& norm;
};

class NormaliseBackward final: public Task {
public:
  NormaliseBackward(const Norm& norm, Place y, Place gradient, Place dy, Write write)
      : norm(norm), y(y), gradient(gradient), dy(dy), write(write) {}

  void run(const Step& step, const Chunk& chunk) override {
    auto channels = norm.channelsIn(step.memory);
    const byte* value = step.memory.at(y, chunk);
    const byte* g = step.memory.at(gradient, chunk);
    byte* to = step.memory.at(dy, chunk);
    for (uint n = 0; n < chunk.images; ++n) {
      step.kernelsFor(y).normaliseBackward(
          value, g, channels, norm.after, to, write, norm.extent.blocks, norm.extent.pixels);
      value += y.stride_bytes();
      g += gradient.stride_bytes();
      to += dy.stride_bytes();
    }
  }

private:
  const Norm& norm;
  Place y, gradient, dy;
  Write write;
};

}  // namespace

kj::Own<Task> takeStatistics(const Norm& norm, Place y) {
  return kj::heap<TakeStatistics>(norm, y);
}
kj::Own<BatchTask> combineStatistics(const Norm& norm) {
  return kj::heap<CombineStatistics>(norm);
}
kj::Own<BatchTask> takeMoving(const Norm& norm) {
  return kj::heap<TakeMoving>(norm);
}
kj::Own<Task> normalise(const Norm& norm, Place y, Place out) {
  return kj::heap<Normalise>(norm, y, out);
}
kj::Own<Task> reduceGradient(const Norm& norm, Place y, Place gradient) {
  return kj::heap<ReduceGradient>(norm, y, gradient);
}
kj::Own<BatchTask> combineGradient(const Norm& norm) {
  return kj::heap<CombineGradient>(norm);
}
kj::Own<BatchTask> exportGradient(const Norm& norm) {
  return kj::heap<ExportGradient>(norm);
}
kj::Own<Task> normaliseBackward(const Norm& norm, Place y, Place gradient, Place dy, Write write) {
  return kj::heap<NormaliseBackward>(norm, y, gradient, dy, write);
}

}  // namespace nn::cpu
