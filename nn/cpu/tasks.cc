#include "nn/cpu/tasks.h"

#include <string.h>

#include <cmath>

namespace nn::cpu {

Channels Norm::channelsIn(const Memory& memory) const {
  float* array = memory.of(*channels, 0);
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
float* partialOf(const Memory& memory, const Norm& norm, const Buffer& partials, size_t n) {
  return memory.of(partials, 0) + n * norm.extent.blocks * 2 * norm.extent.block;
}

class TakeStatistics final: public Task {
public:
  TakeStatistics(const Norm& norm, Place y): norm(norm), y(y) {}

  void run(const Step& step, const Chunk& chunk) override {
    if (step.phase == Phase::VALIDATE) return;
    const float* image = step.memory.at(y, chunk);
    for (uint n = 0; n < chunk.images; ++n, image += y.stride()) {
      float* partial = partialOf(step.memory, norm, *norm.statisticsPartials, chunk.first + n);
      step.kernels.statistics(image, partial, norm.extent.blocks, norm.extent.pixels);
    }
  }

private:
  const Norm& norm;
  Place y;
};

class CombineStatistics final: public BatchTask {
public:
  explicit CombineStatistics(const Norm& norm): norm(norm) {}

  void run(const Step& step, uint part, uint parts) override {
    auto share = shareOf(norm.extent.blocks, part, parts);
    auto channels = norm.channelsIn(step.memory);
    for (auto b = share.begin; b < share.end; ++b) {
      size_t begin = b * norm.extent.block;
      size_t end = kj::min(begin + norm.extent.block, size_t(norm.extent.channels));
      if (step.phase == Phase::TRAIN) {
        fromBatch(step, channels, begin, end);
      } else {
        fromMoving(channels, begin, end);
      }
    }
  }

private:
  const Norm& norm;

  void set(const Channels& channels, size_t c, float mean, float variance) {
    float gamma = norm.op.fixedGamma ? 1.0f : norm.gamma[c];
    channels.mean[c] = mean;
    channels.inverse[c] = float(1 / std::sqrt(double(variance) + norm.op.epsilon));
    channels.scale[c] = gamma * channels.inverse[c];
    channels.shift[c] = norm.beta[c] - mean * channels.scale[c];
  }

  void fromBatch(const Step& step, const Channels& channels, size_t begin, size_t end) {
    // `slope` is free until the gradients are combined.
    float* variance = channels.slope;
    size_t stride = norm.extent.blocks * 2 * norm.extent.block;
    const float* partial = step.memory.of(*norm.statisticsPartials, 0) + 2 * begin;
    step.kernels.combineStatistics(partial, norm.images, stride, norm.extent.pixels,
        channels.mean + begin, variance + begin);
    float momentum = norm.op.momentum;
    for (size_t c = begin; c < end; ++c) {
      float bias = norm.inertBias == nullptr ? 0 : norm.inertBias[c];
      set(channels, c, channels.mean[c], variance[c]);
      norm.movingMean[c] =
          momentum * norm.movingMean[c] + (1 - momentum) * (channels.mean[c] + bias);
      norm.movingVariance[c] = momentum * norm.movingVariance[c] + (1 - momentum) * variance[c];
    }
  }

  void fromMoving(const Channels& channels, size_t begin, size_t end) {
    for (size_t c = begin; c < end; ++c) {
      float bias = norm.inertBias == nullptr ? 0 : norm.inertBias[c];
      set(channels, c, norm.movingMean[c] - bias, norm.movingVariance[c]);
    }
  }
};

class Normalise final: public Task {
public:
  Normalise(const Norm& norm, Place y, Place out): norm(norm), y(y), out(out) {}

  void run(const Step& step, const Chunk& chunk) override {
    auto channels = norm.channelsIn(step.memory);
    const float* from = step.memory.at(y, chunk);
    float* to = step.memory.at(out, chunk);
    for (uint n = 0; n < chunk.images; ++n, from += y.stride(), to += out.stride()) {
      step.kernels.normalise(
          from, channels, norm.rectify, to, norm.extent.blocks, norm.extent.pixels);
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
    const float* value = step.memory.at(y, chunk);
    const float* g = step.memory.at(gradient, chunk);
    for (uint n = 0; n < chunk.images; ++n, value += y.stride(), g += gradient.stride()) {
      float* partial = partialOf(step.memory, norm, *norm.gradientPartials, chunk.first + n);
      step.kernels.reduceGradient(
          value, g, channels, norm.rectify, partial, norm.extent.blocks, norm.extent.pixels);
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
      const float* partial = step.memory.of(*norm.gradientPartials, 0) + 2 * b * B;
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

class ExportGradient final: public BatchTask {
public:
  explicit ExportGradient(const Norm& norm): norm(norm) {}

  void run(const Step& step, uint part, uint parts) override {
    if (part != 0) return;
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
    const float* value = step.memory.at(y, chunk);
    const float* g = step.memory.at(gradient, chunk);
    float* to = step.memory.at(dy, chunk);
    for (uint n = 0; n < chunk.images; ++n) {
      step.kernels.normaliseBackward(
          value, g, channels, norm.rectify, to, write, norm.extent.blocks, norm.extent.pixels);
      value += y.stride();
      g += gradient.stride();
      to += dy.stride();
    }
  }

private:
  const Norm& norm;
  Place y, gradient, dy;
  Write write;
};

class Activate final: public Task {
public:
  Activate(Activation::Function function, Extent extent, Place x)
      : function(function), extent(extent), x(x) {}

  void run(const Step& step, const Chunk& chunk) override {
    auto& kernels = step.kernels;
    auto kernel = function == Activation::RELU ? kernels.relu : kernels.tanh;
    float* image = step.memory.at(x, chunk);
    for (uint n = 0; n < chunk.images; ++n, image += x.stride()) kernel(image, extent.floats());
  }

private:
  Activation::Function function;
  Extent extent;
  Place x;
};

class ActivateBackward final: public Task {
public:
  ActivateBackward(Activation::Function function, Extent extent, Place y, Place gradient)
      : function(function), extent(extent), y(y), gradient(gradient) {}

  void run(const Step& step, const Chunk& chunk) override {
    auto& kernels = step.kernels;
    auto kernel = function == Activation::RELU ? kernels.reluBackward : kernels.tanhBackward;
    const float* value = step.memory.at(y, chunk);
    float* g = step.memory.at(gradient, chunk);
    for (uint n = 0; n < chunk.images; ++n, value += y.stride(), g += gradient.stride()) {
      kernel(value, g, extent.floats());
    }
  }

private:
  Activation::Function function;
  Extent extent;
  Place y, gradient;
};

Window windowOf(const Pool& op, Shape in, Shape out) {
  return {.inHeight = in.height,
      .inWidth = in.width,
      .outHeight = out.height,
      .outWidth = out.width,
      .kernel = op.kernel,
      .stride = op.stride,
      .pad = op.pad};
}

// The index words of a chunk's first image. They lie in a buffer of floats, two words in each.
uint16_t* wordsAt(const Memory& memory, const Place& index, const Chunk& chunk) {
  return reinterpret_cast<uint16_t*>(memory.at(index, chunk));
}

class PoolForward final: public Task {
public:
  PoolForward(const Pool& op, Window window, Extent extent, Place x, Place y, Place index)
      : op(op), window(window), extent(extent), x(x), y(y), index(index) {}

  void run(const Step& step, const Chunk& chunk) override {
    const float* from = step.memory.at(x, chunk);
    float* to = step.memory.at(y, chunk);
    if (op.function == Pool::AVERAGE) {
      for (uint n = 0; n < chunk.images; ++n, from += x.stride(), to += y.stride()) {
        step.kernels.averagePool(from, window, to, extent.blocks);
      }
      return;
    }
    uint16_t* words = wordsAt(step.memory, index, chunk);
    for (uint n = 0; n < chunk.images; ++n, from += x.stride(), to += y.stride()) {
      step.kernels.maxPool(from, window, to, words + n * 2 * index.stride(), extent.blocks);
    }
  }

private:
  const Pool& op;
  Window window;
  Extent extent;
  Place x, y, index;
};

class PoolBackward final: public Task {
public:
  PoolBackward(const Pool& op, Window window, Extent extent, Place gradient, Place index, Place dx,
      Write write)
      : op(op),
        window(window),
        extent(extent),
        gradient(gradient),
        index(index),
        dx(dx),
        write(write) {}

  void run(const Step& step, const Chunk& chunk) override {
    const float* from = step.memory.at(gradient, chunk);
    float* to = step.memory.at(dx, chunk);
    size_t bytes = extent.blocks * extent.block * window.inHeight * window.inWidth * sizeof(float);
    const uint16_t* words =
        op.function == Pool::MAX ? wordsAt(step.memory, index, chunk) : nullptr;
    for (uint n = 0; n < chunk.images; ++n, from += gradient.stride(), to += dx.stride()) {
      if (write == Write::SET) memset(to, 0, bytes);
      if (op.function == Pool::AVERAGE) {
        step.kernels.averagePoolBackward(from, window, to, extent.blocks);
      } else {
        step.kernels.maxPoolBackward(
            from, words + n * 2 * index.stride(), window, to, extent.blocks);
      }
    }
  }

private:
  const Pool& op;
  Window window;
  Extent extent;
  Place gradient, index, dx;
  Write write;
};

class Copy final: public Task {
public:
  Copy(Extent extent, Place from, Place to, Write write)
      : extent(extent), from(from), to(to), write(write) {}

  void run(const Step& step, const Chunk& chunk) override {
    const float* source = step.memory.at(from, chunk);
    float* target = step.memory.at(to, chunk);
    for (uint n = 0; n < chunk.images; ++n, source += from.stride(), target += to.stride()) {
      step.kernels.copy(source, target, write, extent.floats());
    }
  }

private:
  Extent extent;
  Place from, to;
  Write write;
};

class CopyChannels final: public Task {
public:
  CopyChannels(Extent from, Place fromPlace, uint fromChannel, Extent to, Place toPlace,
      uint toChannel, uint channels, Write write)
      : from(from),
        fromPlace(fromPlace),
        fromChannel(fromChannel),
        to(to),
        toPlace(toPlace),
        toChannel(toChannel),
        channels(channels),
        write(write) {}

  void run(const Step& step, const Chunk& chunk) override {
    const float* source = step.memory.at(fromPlace, chunk);
    float* target = step.memory.at(toPlace, chunk);
    for (uint n = 0; n < chunk.images; ++n) {
      for (uint c = 0; c < channels; ++c) {
        one(source + start(from, fromChannel + c), target + start(to, toChannel + c));
      }
      if (toChannel + channels == to.channels && write == Write::SET) {
        for (size_t c = to.channels; c < to.blocks * to.block; ++c) zero(target + start(to, c));
      }
      source += fromPlace.stride();
      target += toPlace.stride();
    }
  }

private:
  Extent from;
  Place fromPlace;
  uint fromChannel;
  Extent to;
  Place toPlace;
  uint toChannel, channels;
  Write write;

  // Where the first pixel of channel `c` lies in an image.
  static size_t start(const Extent& extent, size_t c) {
    return c / extent.block * extent.block * extent.pixels + c % extent.block;
  }
  void one(const float* source, float* target) const {
    for (size_t i = 0; i < to.pixels * to.block; i += to.block) {
      target[i] = write == Write::ADD ? target[i] + source[i] : source[i];
    }
  }
  void zero(float* target) const {
    for (size_t i = 0; i < to.pixels * to.block; i += to.block) target[i] = 0;
  }
};

class Block final: public Task {
public:
  Block(Extent extent, Place plain, Place blocked, Write write)
      : extent(extent), plain(plain), blocked(blocked), write(write) {}

  void run(const Step& step, const Chunk& chunk) override {
    const float* source = step.memory.at(plain, chunk);
    float* target = step.memory.at(blocked, chunk);
    for (uint n = 0; n < chunk.images; ++n, source += plain.stride(), target += blocked.stride()) {
      if (write == Write::SET) {
        image<Write::SET>(source, target);
      } else {
        image<Write::ADD>(source, target);
      }
    }
  }

private:
  Extent extent;
  Place plain, blocked;
  Write write;

  template <Write W>
  void image(const float* source, float* target) const {
    size_t B = extent.block, P = extent.pixels;
    for (size_t b = 0; b < extent.blocks; ++b, target += B * P) {
      size_t inside = kj::min(B, extent.channels - b * B);
      for (size_t i = 0; i < P; ++i) {
        for (size_t c = 0; c < inside; ++c) {
          float value = source[(b * B + c) * P + i];
          target[i * B + c] = W == Write::ADD ? target[i * B + c] + value : value;
        }
        if (W == Write::SET) {
          for (size_t c = inside; c < B; ++c) target[i * B + c] = 0;
        }
      }
    }
  }
};

class Unblock final: public Task {
public:
  Unblock(Extent extent, Place blocked, Place plain)
      : extent(extent), blocked(blocked), plain(plain) {}

  void run(const Step& step, const Chunk& chunk) override {
    const float* source = step.memory.at(blocked, chunk);
    float* target = step.memory.at(plain, chunk);
    size_t B = extent.block, P = extent.pixels;
    for (uint n = 0; n < chunk.images; ++n, source += blocked.stride(), target += plain.stride()) {
      for (size_t c = 0; c < extent.channels; ++c) {
        const float* channel = source + c / B * B * P + c % B;
        for (size_t i = 0; i < P; ++i) target[c * P + i] = channel[i * B];
      }
    }
  }

private:
  Extent extent;
  Place blocked, plain;
};

class Loss final: public Task {
public:
  Loss(Extent extent, Place logits, Place gradient, Verdicts& verdicts)
      : extent(extent), logits(logits), gradient(gradient), verdicts(verdicts) {}

  void run(const Step& step, const Chunk& chunk) override {
    const float* x = step.memory.at(logits, chunk);
    float* g = step.memory.at(gradient, chunk);
    for (uint n = 0; n < chunk.images; ++n, x += logits.stride(), g += gradient.stride()) {
      row(x, g, step.labels[chunk.first + n], chunk.first + n);
    }
  }

private:
  Extent extent;
  Place logits, gradient;
  Verdicts& verdicts;

  void row(const float* x, float* g, int32_t label, uint n) {
    memset(g, 0, extent.floats() * sizeof(float));
    verdicts.losses[n] = 0;
    verdicts.correct[n] = -1;
    if (label < 0) return;

    uint best = 0;
    for (uint k = 1; k < extent.channels; ++k) {
      if (x[k] > x[best]) best = k;
    }
    double sum = 0;
    for (uint k = 0; k < extent.channels; ++k) sum += std::exp(double(x[k]) - x[best]);
    for (uint k = 0; k < extent.channels; ++k) {
      g[k] = float(std::exp(double(x[k]) - x[best]) / sum - (k == uint(label)));
    }
    verdicts.losses[n] = std::log(sum) + x[best] - x[label];
    verdicts.correct[n] = best == uint(label);
  }
};

}  // namespace

kj::Own<Task> takeStatistics(const Norm& norm, Place y) {
  return kj::heap<TakeStatistics>(norm, y);
}
kj::Own<BatchTask> combineStatistics(const Norm& norm) {
  return kj::heap<CombineStatistics>(norm);
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
kj::Own<Task> activate(Activation::Function function, Extent extent, Place x) {
  return kj::heap<Activate>(function, extent, x);
}
kj::Own<Task> activateBackward(
    Activation::Function function, Extent extent, Place y, Place gradient) {
  return kj::heap<ActivateBackward>(function, extent, y, gradient);
}
kj::Own<Task> pool(const Pool& op, Shape in, Shape out, uint block, Place x, Place y, Place index) {
  return kj::heap<PoolForward>(op, windowOf(op, in, out), Extent(out, block), x, y, index);
}
kj::Own<Task> poolBackward(const Pool& op, Shape in, Shape out, uint block, Place gradient,
    Place index, Place dx, Write write) {
  return kj::heap<PoolBackward>(
      op, windowOf(op, in, out), Extent(out, block), gradient, index, dx, write);
}
kj::Own<Task> copy(Extent extent, Place from, Place to, Write write) {
  return kj::heap<Copy>(extent, from, to, write);
}
kj::Own<Task> copyChannels(Extent from, Place fromPlace, uint fromChannel, Extent to, Place toPlace,
    uint toChannel, uint channels, Write write) {
  return kj::heap<CopyChannels>(
      from, fromPlace, fromChannel, to, toPlace, toChannel, channels, write);
}
kj::Own<Task> block(Extent extent, Place plain, Place blocked, Write write) {
  return kj::heap<Block>(extent, plain, blocked, write);
}
kj::Own<Task> unblock(Extent extent, Place blocked, Place plain) {
  return kj::heap<Unblock>(extent, blocked, plain);
}
kj::Own<Task> loss(Extent extent, Place logits, Place gradient, Verdicts& verdicts) {
  return kj::heap<Loss>(extent, logits, gradient, verdicts);
}

}  // namespace nn::cpu
