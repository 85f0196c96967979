#include "nn/cpu/tasks.h"

#include <kj/debug.h>
#include <string.h>

#include <cmath>

#include "nn/softmax.h"

namespace nn::cpu {

namespace {

const ActivationLoops& loopsOf(const ValueKernels& kernels, Activation::Function function) {
  switch (function) {
    case Activation::RELU:
      return kernels.relu;
    case Activation::TANH:
      return kernels.tanh;
    case Activation::SIGMOID:
      return kernels.sigmoid;
    case Activation::ELU:
      return kernels.elu;
    case Activation::GELU:
      break;  // not in place
  }
  KJ_UNREACHABLE;
}

// Zeros in the channels that fill up the last block.
void clearPadding(byte* image, const Extent& extent, Element element) {
  size_t used = extent.channels % extent.block, value = bytesOf(element);
  if (used == 0) return;
  byte* pixel = image + (extent.blocks - 1) * extent.pixels * extent.block * value;
  for (size_t i = 0; i < extent.pixels; ++i, pixel += extent.block * value) {
    memset(pixel + used * value, 0, (extent.block - used) * value);
  }
}

class ActivateTask final: public Task {
public:
  ActivateTask(Activation::Function function, Extent extent, Place x)
      : function(function), extent(extent), x(x) {}

  void run(const Step& step, const Chunk& chunk) override {
    auto& loops = loopsOf(step.kernelsFor(x), function);
    byte* image = step.memory.at(x, chunk);
    for (uint n = 0; n < chunk.images; ++n, image += x.stride_bytes()) {
      loops.forward(image, extent.values());
      if (function == Activation::SIGMOID) clearPadding(image, extent, x.element());
    }
  }

private:
  Activation::Function function;
  Extent extent;
  Place x;
};

class ActivateBackwardTask final: public Task {
public:
  ActivateBackwardTask(Activation::Function function, Extent extent, Place y, Place gradient)
      : function(function), extent(extent), y(y), gradient(gradient) {}

  void run(const Step& step, const Chunk& chunk) override {
    auto& loops = loopsOf(step.kernelsFor(y), function);
    const byte* value = step.memory.at(y, chunk);
    byte* g = step.memory.at(gradient, chunk);
    for (uint n = 0; n < chunk.images;
         ++n, value += y.stride_bytes(), g += gradient.stride_bytes()) {
      loops.backward(value, g, extent.values());
    }
  }

private:
  Activation::Function function;
  Extent extent;
  Place y, gradient;
};

class Gelu final: public Task {
public:
  Gelu(Extent extent, Place from, Place to): extent(extent), from(from), to(to) {}

  void run(const Step& step, const Chunk& chunk) override {
    const byte* source = step.memory.at(from, chunk);
    byte* target = step.memory.at(to, chunk);
    for (uint n = 0; n < chunk.images;
         ++n, source += from.stride_bytes(), target += to.stride_bytes()) {
      step.kernelsFor(from).gelu(source, target, extent.values());
    }
  }

private:
  Extent extent;
  Place from, to;
};

class GeluBackward final: public Task {
public:
  GeluBackward(Extent extent, Place x, Place gradient, Place dx, Write write)
      : extent(extent), x(x), gradient(gradient), dx(dx), write(write) {}

  void run(const Step& step, const Chunk& chunk) override {
    const byte* value = step.memory.at(x, chunk);
    const byte* g = step.memory.at(gradient, chunk);
    byte* to = step.memory.at(dx, chunk);
    for (uint n = 0; n < chunk.images; ++n) {
      step.kernelsFor(x).geluBackward(value, g, to, write, extent.values());
      value += x.stride_bytes();
      g += gradient.stride_bytes();
      to += dx.stride_bytes();
    }
  }

private:
  Extent extent;
  Place x, gradient, dx;
  Write write;
};

class ScaleTask final: public Task {
public:
  ScaleTask(Extent extent, float factor, Place from, Place to, Write write)
      : extent(extent), factor(factor), from(from), to(to), write(write) {}

  void run(const Step& step, const Chunk& chunk) override {
    const byte* source = step.memory.at(from, chunk);
    byte* target = step.memory.at(to, chunk);
    for (uint n = 0; n < chunk.images;
         ++n, source += from.stride_bytes(), target += to.stride_bytes()) {
      step.kernelsFor(from).scale(source, factor, target, write, extent.values());
    }
  }

private:
  Extent extent;
  float factor;
  Place from, to;
  Write write;
};

class Drop final: public Task {
public:
  Drop(const Dropout& op, NodeId node, Extent extent, Place from, Place to, Write write)
      : op(op), node(node), extent(extent), from(from), to(to), write(write) {}

  void run(const Step& step, const Chunk& chunk) override {
    const byte* source = step.memory.at(from, chunk);
    byte* target = step.memory.at(to, chunk);
    for (uint n = 0; n < chunk.images; ++n) {
      auto mask = dropoutMask(op.rate, step.draws[chunk.first + n], node);
      step.kernelsFor(from).drop(source, mask, target, write, extent.blocks, extent.pixels);
      source += from.stride_bytes();
      target += to.stride_bytes();
    }
  }

private:
  const Dropout& op;
  NodeId node;
  Extent extent;
  Place from, to;
  Write write;
};

class DropRows final: public Task {
public:
  DropRows(const Dropout& op, NodeId node, size_t size, Place from, Place to)
      : op(op), node(node), size(size), from(from), to(to) {}

  void run(const Step& step, const Chunk& chunk) override {
    const float* source = step.memory.floatsAt(from, chunk);
    float* target = step.memory.floatsAt(to, chunk);
    for (uint n = 0; n < chunk.images; ++n, source += from.stride(), target += to.stride()) {
      auto mask = dropoutMask(op.rate, step.draws[chunk.first + n], node);
      step.kernels.dropRow(source, mask, target, size);
    }
  }

private:
  const Dropout& op;
  NodeId node;
  size_t size;
  Place from, to;
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
uint16_t* wordsAt(const Addresses& memory, const Place& index, const Chunk& chunk) {
  return reinterpret_cast<uint16_t*>(memory.floatsAt(index, chunk));
}

class PoolForward final: public Task {
public:
  PoolForward(const Pool& op, Window window, Extent extent, Place x, Place y, Place index)
      : op(op), window(window), extent(extent), x(x), y(y), index(index) {}

  void run(const Step& step, const Chunk& chunk) override {
    const byte* from = step.memory.at(x, chunk);
    byte* to = step.memory.at(y, chunk);
    auto& kernels = step.kernelsFor(x);
    if (op.function == Pool::AVERAGE) {
      for (uint n = 0; n < chunk.images; ++n, from += x.stride_bytes(), to += y.stride_bytes()) {
        kernels.averagePool(from, window, to, extent.blocks);
      }
      return;
    }
    bool isKept = index.buffer != nullptr;
    uint16_t* words = isKept ? wordsAt(step.memory, index, chunk) : nullptr;
    for (uint n = 0; n < chunk.images; ++n, from += x.stride_bytes(), to += y.stride_bytes()) {
      kernels.maxPool(from, window, to, words, extent.blocks);
      if (isKept) words += 2 * index.stride();
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
    const byte* from = step.memory.at(gradient, chunk);
    byte* to = step.memory.at(dx, chunk);
    auto& kernels = step.kernelsFor(dx);
    const uint16_t* words = op.function == Pool::MAX ? wordsAt(step.memory, index, chunk) : nullptr;
    for (uint n = 0; n < chunk.images;
         ++n, from += gradient.stride_bytes(), to += dx.stride_bytes()) {
      if (op.function == Pool::AVERAGE) {
        kernels.averagePoolBackward(from, window, to, write, extent.blocks);
      } else {
        kernels.maxPoolBackward(
            from, words + n * 2 * index.stride(), window, to, write, extent.blocks);
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

class Loss final: public Task {
public:
  Loss(double smoothing, Extent extent, Place logits, Place gradient, Verdicts& verdicts)
      : smoothing(smoothing),
        extent(extent),
        logits(logits),
        gradient(gradient),
        verdicts(verdicts) {}

  void run(const Step& step, const Chunk& chunk) override {
    const float* x = step.memory.floatsAt(logits, chunk);
    bool hasBackward = gradient.buffer != nullptr;
    float* g = hasBackward ? step.memory.floatsAt(gradient, chunk) : nullptr;
    for (uint n = 0; n < chunk.images; ++n, x += logits.stride()) {
      row(x, g, step.labels[chunk.first + n], chunk.first + n);
      if (hasBackward) g += gradient.stride();
    }
  }

private:
  double smoothing;
  Extent extent;
  Place logits, gradient;
  Verdicts& verdicts;

  // Null `g` for none.
  void row(const float* x, float* g, int32_t label, uint n) {
    if (g != nullptr) memset(g, 0, extent.values() * sizeof(float));
    verdicts.losses[n] = 0;
    verdicts.correct[n] = -1;
    if (label < 0) return;

    auto [best, sum] = softmaxOf(kj::arrayPtr(x, extent.channels));
    double logits = 0;
    for (uint k = 0; k < extent.channels; ++k) logits += x[k];
    double other = smoothing / extent.channels, own = 1 - smoothing;
    for (uint k = 0; g != nullptr && k < extent.channels; ++k) {
      g[k] = float(std::exp(double(x[k]) - x[best]) / sum - (k == uint(label)) * own - other);
    }
    verdicts.losses[n] = std::log(sum) + x[best] - own * x[label] - other * logits;
    verdicts.correct[n] = best == uint(label);
  }
};

}  // namespace

kj::Own<Task> activate(Activation::Function function, Extent extent, Place x) {
  return kj::heap<ActivateTask>(function, extent, x);
}
kj::Own<Task> activateBackward(
    Activation::Function function, Extent extent, Place y, Place gradient) {
  return kj::heap<ActivateBackwardTask>(function, extent, y, gradient);
}
kj::Own<Task> gelu(Extent extent, Place from, Place to) {
  return kj::heap<Gelu>(extent, from, to);
}
kj::Own<Task> geluBackward(Extent extent, Place x, Place gradient, Place dx, Write write) {
  return kj::heap<GeluBackward>(extent, x, gradient, dx, write);
}
kj::Own<Task> scale(Extent extent, float factor, Place from, Place to, Write write) {
  return kj::heap<ScaleTask>(extent, factor, from, to, write);
}
kj::Own<Task> drop(
    const Dropout& op, NodeId node, Extent extent, Place from, Place to, Write write) {
  return kj::heap<Drop>(op, node, extent, from, to, write);
}
kj::Own<Task> dropRows(const Dropout& op, NodeId node, size_t size, Place from, Place to) {
  return kj::heap<DropRows>(op, node, size, from, to);
}
kj::Own<Task> pool(const Pool& op, Shape in, Shape out, uint block, Place x, Place y, Place index) {
  return kj::heap<PoolForward>(op, windowOf(op, in, out), Extent(out, block), x, y, index);
}
kj::Own<Task> poolBackward(const Pool& op, Shape in, Shape out, uint block, Place gradient,
    Place index, Place dx, Write write) {
  return kj::heap<PoolBackward>(
      op, windowOf(op, in, out), Extent(out, block), gradient, index, dx, write);
}
kj::Own<Task> loss(
    double smoothing, Extent extent, Place logits, Place gradient, Verdicts& verdicts) {
  return kj::heap<Loss>(smoothing, extent, logits, gradient, verdicts);
}

}  // namespace nn::cpu
