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
  byte* run = image + (extent.blocks - 1) * extent.runs() * extent.block * value;
  for (size_t i = 0; i < extent.runs(); ++i, run += extent.block * value) {
    memset(run + used * value, 0, (extent.block - used) * value);
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

// The index words of a chunk's first image. They are in a buffer of floats, two words per float.
uint16_t* wordsAt(const Addresses& memory, const Place& index, const Chunk& chunk) {
  return reinterpret_cast<uint16_t*>(memory.floatsAt(index, chunk));
}

// `g` is null if there is no backward pass. The caller has set its row to 0.
void lossOfRow(double smoothing, uint classes, const float* x, float* g, int32_t label,
    double& loss, int8_t& correct) {
  loss = 0;
  correct = -1;
  if (label < 0) return;

  auto [best, sum] = softmaxOf(kj::arrayPtr(x, classes));
  double logits = 0;
  for (uint k = 0; k < classes; ++k) logits += x[k];
  double other = smoothing / classes, own = 1 - smoothing;
  for (uint k = 0; g != nullptr && k < classes; ++k) {
    g[k] = float(std::exp(double(x[k]) - x[best]) / sum - (k == uint(label)) * own - other);
  }
  loss = std::log(sum) + x[best] - own * x[label] - other * logits;
  correct = best == uint(label);
}

}  // namespace

kj::Own<Task> activate(Activation::Function function, Extent extent, Place x) {
  if (function == Activation::SIGMOID) {
    return newImageTask(
        [=](const Step& step, uint, byte* image) {
          step.kernelsFor(x).sigmoid.forward(image, extent.values());
          clearPadding(image, extent, x.element());
        },
        x);
  }
  return newValueTask(
      extent.values(),
      [=](const Step& step, size_t count, byte* values) {
        loopsOf(step.kernelsFor(x), function).forward(values, count);
      },
      x);
}

kj::Own<Task> activateBackward(
    Activation::Function function, Extent extent, Place y, Place gradient) {
  return newValueTask(
      extent.values(),
      [=](const Step& step, size_t count, const byte* value, byte* g) {
        loopsOf(step.kernelsFor(y), function).backward(value, g, count);
      },
      y, gradient);
}

kj::Own<Task> gelu(Extent extent, Place from, Place to) {
  return newValueTask(
      extent.values(),
      [=](const Step& step, size_t count, const byte* source, byte* target) {
        step.kernelsFor(from).gelu(source, target, count);
      },
      from, to);
}

kj::Own<Task> geluBackward(Extent extent, Place x, Place gradient, Place dx, Write write) {
  return newValueTask(
      extent.values(),
      [=](const Step& step, size_t count, const byte* value, const byte* g, byte* to) {
        step.kernelsFor(x).geluBackward(value, g, to, write, count);
      },
      x, gradient, dx);
}

kj::Own<Task> scale(Extent extent, float factor, Place from, Place to, Write write) {
  return newValueTask(
      extent.values(),
      [=](const Step& step, size_t count, const byte* source, byte* target) {
        step.kernelsFor(from).scale(source, factor, target, write, count);
      },
      from, to);
}

kj::Own<Task> drop(
    const Dropout& op, NodeId node, Extent extent, Batch batch, Place from, Place to, Write write) {
  size_t run = extent.block * bytesOf(from.element());
  return newImageTask(
      [=](const Step& step, uint n, const byte* source, byte* target) {
        for (uint i = 0; i < batch.group; ++i, source += run, target += run) {
          // Images that only fill the group have the values of the last image.
          uint image = kj::min(n * batch.group + i, batch.images - 1);
          auto mask = dropoutMask(op.rate, step.draws[image], node);
          step.kernelsFor(from).drop(source, mask, target, write, extent.blocks, extent.pixels);
        }
      },
      from, to);
}

kj::Own<Task> dropRows(
    const Dropout& op, NodeId node, size_t size, Batch batch, Place from, Place to) {
  return newImageTask(
      [=](const Step& step, uint n, const byte* source, byte* target) {
        auto* row = reinterpret_cast<const float*>(source);
        auto* kept = reinterpret_cast<float*>(target);
        for (uint i = 0; i < batch.imagesOf(n); ++i, row += size, kept += size) {
          auto mask = dropoutMask(op.rate, step.draws[n * batch.group + i], node);
          step.kernels.dropRow(row, mask, kept, size);
        }
      },
      from, to);
}

namespace {

// The blocks of channels that are a lane's share of a pool, and how many values of the large and
// of the small images come before them.
struct PooledBlocks {
  Range blocks;
  size_t large, small;

  PooledBlocks(const Step& step, const Chunk& chunk, size_t count, const Window& w)
      : blocks(chunk.share.of(count)) {
    size_t values = blocks.begin * step.kernels.block * step.kernels.group;
    large = values * w.inHeight * w.inWidth;
    small = values * w.outHeight * w.outWidth;
  }
};

}  // namespace

kj::Own<Task> pool(const Pool& op, Shape in, Shape out, uint block, Place x, Place y, Place index) {
  auto window = windowOf(op, in, out);
  auto count = Extent(out, block).blocks;
  bool isAverage = op.function == Pool::AVERAGE, isKept = index.buffer != nullptr;
  return newSharedTask([=](const Step& step, const Chunk& chunk) {
    PooledBlocks share(step, chunk, count, window);
    auto& loops = step.kernelsFor(x);
    uint16_t* words = isKept ? wordsAt(step.memory, index, chunk) + share.small : nullptr;
    eachImage(
        step, chunk,
        [&](uint, const byte* from, byte* to) {
          from += share.large * bytesOf(x.element());
          to += share.small * bytesOf(y.element());
          if (isAverage) {
            loops.averagePool(from, window, to, share.blocks.size());
          } else {
            loops.maxPool(from, window, to, words, share.blocks.size());
          }
          if (isKept) words += 2 * index.stride();
        },
        x, y);
  });
}

kj::Own<Task> poolBackward(const Pool& op, Shape in, Shape out, uint block, Place gradient,
    Place index, Place dx, Write write) {
  auto window = windowOf(op, in, out);
  auto count = Extent(out, block).blocks;
  bool isAverage = op.function == Pool::AVERAGE;
  return newSharedTask([=](const Step& step, const Chunk& chunk) {
    PooledBlocks share(step, chunk, count, window);
    auto& loops = step.kernelsFor(dx);
    const uint16_t* words = isAverage ? nullptr : wordsAt(step.memory, index, chunk) + share.small;
    eachImage(
        step, chunk,
        [&](uint, const byte* from, byte* to) {
          from += share.small * bytesOf(gradient.element());
          to += share.large * bytesOf(dx.element());
          if (isAverage) {
            loops.averagePoolBackward(from, window, to, write, share.blocks.size());
          } else {
            loops.maxPoolBackward(from, words, window, to, write, share.blocks.size());
            words += 2 * index.stride();
          }
        },
        gradient, dx);
  });
}

kj::Own<Task> loss(
    double smoothing, uint classes, Batch batch, Place logits, Place gradient, Verdicts& verdicts) {
  return newTask([=, &verdicts](const Step& step, const Chunk& chunk) {
    const float* x = step.memory.floatsAt(logits, chunk);
    bool hasBackward = gradient.buffer != nullptr;
    float* g = hasBackward ? step.memory.floatsAt(gradient, chunk) : nullptr;
    if (hasBackward) memset(g, 0, chunk.images * gradient.stride_bytes());
    uint end = kj::min((chunk.first + chunk.images) * batch.group, batch.images);
    for (uint n = chunk.first * batch.group; n < end; ++n, x += logits.stride() / batch.group) {
      lossOfRow(smoothing, classes, x, g, step.labels[n], verdicts.losses[n], verdicts.correct[n]);
      if (hasBackward) g += gradient.stride() / batch.group;
    }
  });
}

}  // namespace nn::cpu
