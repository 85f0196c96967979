#include "nn/cpu/norm.h"

#include <string.h>

#include <cmath>

namespace nn::cpu {

Channels Norm::channelsIn(const Addresses& memory, size_t firstBlock) const {
  float* array = memory.floatsOf(*channels, 0) + firstBlock * extent.block;
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

// Where the partial sums of a block of image `n` begin.
float* partialOf(
    const Addresses& memory, const Norm& norm, const Buffer& partials, size_t n, size_t block) {
  return memory.floatsOf(partials, 0) + (n * norm.extent.blocks + block) * 2 * norm.extent.block;
}

// Sets the numbers that normalize channel c.
void setChannel(const Norm& norm, const Channels& channels, size_t c, float mean, float variance) {
  float gamma = norm.op.fixedGamma ? 1.0f : norm.gamma[c];
  channels.mean[c] = mean;
  channels.inverse[c] = float(1 / std::sqrt(double(variance) + norm.op.epsilon));
  channels.scale[c] = gamma * channels.inverse[c];
  channels.shift[c] = norm.beta[c] - mean * channels.scale[c];
}

float biasOf(const Norm& norm, size_t c) {
  return norm.inertBias == nullptr ? 0 : norm.inertBias[c];
}

// Returns a task that calls setBlock(step, channels, begin, end) for the channels of each block,
// and sets the channels that fill up the last block to 0. Otherwise old content of the memory would
// get into the padding of images. The arrays that are not cleared follow from these.
template <typename SetBlock>
kj::Own<BatchTask> newChannelsTask(const Norm& norm, SetBlock setBlock) {
  return newBatchTask([&norm, setBlock](const Step& step, uint part, uint parts) {
    auto share = Share{part, parts}.of(norm.extent.blocks);
    auto channels = norm.channelsIn(step.memory);
    for (auto b = share.begin; b < share.end; ++b) {
      size_t begin = b * norm.extent.block;
      size_t end = kj::min(begin + norm.extent.block, size_t(norm.extent.channels));
      setBlock(step, channels, begin, end);
      for (float* array: {channels.mean, channels.inverse, channels.scale, channels.shift}) {
        memset(array + end, 0, (begin + norm.extent.block - end) * sizeof(float));
      }
    }
  });
}

}  // namespace

kj::Own<Task> takeStatistics(const Norm& norm, Place y) {
  return newBlockTask(
      norm.extent,
      [&norm, y](const Step& step, uint n, Range blocks, const byte* image) {
        float* partial = partialOf(step.memory, norm, *norm.statisticsPartials, n, blocks.begin);
        step.kernelsFor(y).statistics(
            image, partial, blocks.size(), norm.extent.pixels, norm.batch.imagesOf(n));
      },
      y);
}

kj::Own<BatchTask> combineStatistics(const Norm& norm) {
  return newChannelsTask(
      norm, [&norm](const Step& step, const Channels& channels, size_t begin, size_t end) {
        // `slope` is free until the gradients are combined.
        float* variance = channels.slope;
        size_t stride = norm.extent.blocks * 2 * norm.extent.block;
        const float* partial = step.memory.floatsOf(*norm.statisticsPartials, 0) + 2 * begin;
        uint groups = norm.batch.groups();
        float last = float(norm.batch.imagesOf(groups - 1)) / float(norm.batch.group);
        step.kernels.combineStatistics(partial, groups, last, stride, norm.extent.runs(),
            channels.mean + begin, variance + begin);
        float momentum = norm.op.momentum;
        for (size_t c = begin; c < end; ++c) {
          setChannel(norm, channels, c, channels.mean[c], variance[c]);
          norm.movingMean[c] =
              momentum * norm.movingMean[c] + (1 - momentum) * (channels.mean[c] + biasOf(norm, c));
          norm.movingVariance[c] = momentum * norm.movingVariance[c] + (1 - momentum) * variance[c];
        }
      });
}

kj::Own<BatchTask> takeMoving(const Norm& norm) {
  return newChannelsTask(norm, [&norm](const Step&, const Channels& channels, size_t begin,
                                   size_t end) {
    for (size_t c = begin; c < end; ++c) {
      setChannel(norm, channels, c, norm.movingMean[c] - biasOf(norm, c), norm.movingVariance[c]);
    }
  });
}

kj::Own<Task> normalise(const Norm& norm, Place y, Place out) {
  return newBlockTask(
      norm.extent,
      [&norm, y](const Step& step, uint, Range blocks, const byte* from, byte* to) {
        step.kernelsFor(y).normalise(from, norm.channelsIn(step.memory, blocks.begin), norm.after,
            to, blocks.size(), norm.extent.pixels);
      },
      y, out);
}

kj::Own<Task> reduceGradient(const Norm& norm, Place y, Place gradient) {
  return newBlockTask(
      norm.extent,
      [&norm, y](const Step& step, uint n, Range blocks, const byte* value, const byte* g) {
        float* partial = partialOf(step.memory, norm, *norm.gradientPartials, n, blocks.begin);
        step.kernelsFor(y).reduceGradient(value, g, norm.channelsIn(step.memory, blocks.begin),
            norm.after, partial, blocks.size(), norm.extent.pixels);
      },
      y, gradient);
}

kj::Own<BatchTask> combineGradient(const Norm& norm) {
  return newBatchTask([&norm](const Step& step, uint part, uint parts) {
    auto share = Share{part, parts}.of(norm.extent.blocks);
    auto channels = norm.channelsIn(step.memory);
    size_t B = norm.extent.block;
    float values = float(norm.batch.images) * float(norm.extent.pixels);
    for (auto b = share.begin; b < share.end; ++b) {
      const float* partial = step.memory.floatsOf(*norm.gradientPartials, 0) + 2 * b * B;
      // The gamma's gradient gets the sum of g·(y - mean) first.
      step.kernels.sumPartials(partial, norm.batch.groups(), norm.extent.blocks * 2 * B,
          channels.betaGradient + b * B, channels.gammaGradient + b * B);
      for (size_t c = b * B; c < (b + 1) * B; ++c) {
        channels.gammaGradient[c] *= channels.inverse[c];
        channels.meanGradient[c] = channels.betaGradient[c] / values;
        channels.slope[c] = channels.gammaGradient[c] * channels.inverse[c] / values;
      }
    }
  });
}

kj::Own<BatchTask> exportGradient(const Norm& norm) {
  return newWholeTask(0, [&norm](const Step& step, uint) {
    auto channels = norm.channelsIn(step.memory);
    size_t bytes = norm.extent.channels * sizeof(float);
    memcpy(norm.betaGradient, channels.betaGradient, bytes);
    if (norm.op.fixedGamma) {
      memset(norm.gammaGradient, 0, bytes);
    } else {
      memcpy(norm.gammaGradient, channels.gammaGradient, bytes);
    }
  });
}

kj::Own<Task> normaliseBackward(const Norm& norm, Place y, Place gradient, Place dy, Write write) {
  return newBlockTask(
      norm.extent,
      [&norm, y, write](
          const Step& step, uint n, Range blocks, const byte* value, const byte* g, byte* to) {
        step.kernelsFor(y).normaliseBackward(value, g, norm.channelsIn(step.memory, blocks.begin),
            norm.after, to, write, blocks.size(), norm.extent.pixels, norm.batch.imagesOf(n));
      },
      y, gradient, dy);
}

}  // namespace nn::cpu
