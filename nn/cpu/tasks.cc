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

// `g` is null if there is no backward pass.
void lossOfRow(double smoothing, const Extent& extent, const float* x, float* g, int32_t label,
    double& loss, int8_t& correct) {
  if (g != nullptr) memset(g, 0, extent.values() * sizeof(float));
  loss = 0;
  correct = -1;
  if (label < 0) return;

  auto [best, sum] = softmaxOf(kj::arrayPtr(x, extent.channels));
  double logits = 0;
  for (uint k = 0; k < extent.channels; ++k) logits += x[k];
  double other = smoothing / extent.channels, own = 1 - smoothing;
  for (uint k = 0; g != nullptr && k < extent.channels; ++k) {
    g[k] = float(std::exp(double(x[k]) - x[best]) / sum - (k == uint(label)) * own - other);
  }
  loss = std::log(sum) + x[best] - own * x[label] - other * logits;
  correct = best == uint(label);
}

}  // namespace

kj::Own<Task> activate(Activation::Function function, Extent extent, Place x) {
  return newImageTask(
      [=](const Step& step, uint, byte* image) {
        loopsOf(step.kernelsFor(x), function).forward(image, extent.values());
        if (function == Activation::SIGMOID) clearPadding(image, extent, x.element());
      },
      x);
}

kj::Own<Task> activateBackward(
    Activation::Function function, Extent extent, Place y, Place gradient) {
  return newImageTask(
      [=](const Step& step, uint, const byte* value, byte* g) {
        loopsOf(step.kernelsFor(y), function).backward(value, g, extent.values());
      },
      y, gradient);
}

kj::Own<Task> gelu(Extent extent, Place from, Place to) {
  return newImageTask(
      [=](const Step& step, uint, const byte* source, byte* target) {
        step.kernelsFor(from).gelu(source, target, extent.values());
      },
      from, to);
}

kj::Own<Task> geluBackward(Extent extent, Place x, Place gradient, Place dx, Write write) {
  return newImageTask(
      [=](const Step& step, uint, const byte* value, const byte* g, byte* to) {
        step.kernelsFor(x).geluBackward(value, g, to, write, extent.values());
      },
      x, gradient, dx);
}

kj::Own<Task> scale(Extent extent, float factor, Place from, Place to, Write write) {
  return newImageTask(
      [=](const Step& step, uint, const byte* source, byte* target) {
        step.kernelsFor(from).scale(source, factor, target, write, extent.values());
      },
      from, to);
}

kj::Own<Task> drop(
    const Dropout& op, NodeId node, Extent extent, Place from, Place to, Write write) {
  return newImageTask(
      [=](const Step& step, uint n, const byte* source, byte* target) {
        auto mask = dropoutMask(op.rate, step.draws[n], node);
        step.kernelsFor(from).drop(source, mask, target, write, extent.blocks, extent.pixels);
      },
      from, to);
}

kj::Own<Task> dropRows(const Dropout& op, NodeId node, size_t size, Place from, Place to) {
  return newTask([=](const Step& step, const Chunk& chunk) {
    const float* source = step.memory.floatsAt(from, chunk);
    float* target = step.memory.floatsAt(to, chunk);
    for (uint n = 0; n < chunk.images; ++n, source += from.stride(), target += to.stride()) {
      auto mask = dropoutMask(op.rate, step.draws[chunk.first + n], node);
      step.kernels.dropRow(source, mask, target, size);
    }
  });
}

kj::Own<Task> pool(const Pool& op, Shape in, Shape out, uint block, Place x, Place y, Place index) {
  auto window = windowOf(op, in, out);
  auto blocks = Extent(out, block).blocks;
  if (op.function == Pool::AVERAGE) {
    return newImageTask([=](const Step& step, uint, const byte* from,
                            byte* to) { step.kernelsFor(x).averagePool(from, window, to, blocks); },
        x, y);
  }
  return newTask([=](const Step& step, const Chunk& chunk) {
    const byte* from = step.memory.at(x, chunk);
    byte* to = step.memory.at(y, chunk);
    bool isKept = index.buffer != nullptr;
    uint16_t* words = isKept ? wordsAt(step.memory, index, chunk) : nullptr;
    for (uint n = 0; n < chunk.images; ++n, from += x.stride_bytes(), to += y.stride_bytes()) {
      step.kernelsFor(x).maxPool(from, window, to, words, blocks);
      if (isKept) words += 2 * index.stride();
    }
  });
}

kj::Own<Task> poolBackward(const Pool& op, Shape in, Shape out, uint block, Place gradient,
    Place index, Place dx, Write write) {
  auto window = windowOf(op, in, out);
  auto blocks = Extent(out, block).blocks;
  if (op.function == Pool::AVERAGE) {
    return newImageTask(
        [=](const Step& step, uint, const byte* from, byte* to) {
          step.kernelsFor(dx).averagePoolBackward(from, window, to, write, blocks);
        },
        gradient, dx);
  }
  return newTask([=](const Step& step, const Chunk& chunk) {
    const byte* from = step.memory.at(gradient, chunk);
    byte* to = step.memory.at(dx, chunk);
    const uint16_t* words = wordsAt(step.memory, index, chunk);
    for (uint n = 0; n < chunk.images; ++n) {
      step.kernelsFor(dx).maxPoolBackward(from, words, window, to, write, blocks);
      from += gradient.stride_bytes();
      to += dx.stride_bytes();
      words += 2 * index.stride();
    }
  });
}

kj::Own<Task> loss(
    double smoothing, Extent extent, Place logits, Place gradient, Verdicts& verdicts) {
  return newTask([=, &verdicts](const Step& step, const Chunk& chunk) {
    const float* x = step.memory.floatsAt(logits, chunk);
    bool hasBackward = gradient.buffer != nullptr;
    float* g = hasBackward ? step.memory.floatsAt(gradient, chunk) : nullptr;
    for (uint n = chunk.first; n < chunk.first + chunk.images; ++n, x += logits.stride()) {
      lossOfRow(smoothing, extent, x, g, step.labels[n], verdicts.losses[n], verdicts.correct[n]);
      if (hasBackward) g += gradient.stride();
    }
  });
}

}  // namespace nn::cpu
