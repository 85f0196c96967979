// nn/cpu/tasks.h: the pieces of work that a step is made of.
#pragma once

#include <dnnl.h>
#include <kj/array.h>
#include <kj/memory.h>

#include "nn/cpu/kernels.h"
#include "nn/cpu/memory.h"
#include "nn/program.h"

namespace nn::cpu {

// The state that tasks see while a step runs.
struct Step {
  const Kernels& kernels;
  Addresses memory;
  const int32_t* labels = nullptr;
  kj::ArrayPtr<const uint64_t> draws = nullptr;         // one per row, or none
  kj::ArrayPtr<const dnnl_stream_t> streams = nullptr;  // one per lane

  // The kernels for the element of `place`.
  const ValueKernels& kernelsFor(const Place& place) const {
    return place.element() == Element::FLOAT32 ? kernels.floats : *kernels.bfloat16s;
  }
};

// The images of a batch, in groups that are interleaved in memory: see Kernels::group. Only the
// last group may have fewer. Here and below, "images of a chunk" and "strides between images" refer
// to groups. A group may consist of one image.
struct Batch {
  uint images;
  uint group;

  uint groups() const { return (images + group - 1) / group; }
  // How many images of group `n` are part of the batch. Others only fill the group. They have the
  // values of the last image, and their gradients are 0.
  uint imagesOf(uint n) const { return kj::min(group, images - n * group); }
  // The same groups, with all images part of the batch.
  Batch filled() const { return {groups() * group, group}; }
};

// Work on one chunk of images at a time. Lanes run the same task at the same time, on chunks of
// their own, or on their shares of the same chunk. One share must not need what another one
// computes.
class Task {
public:
  virtual ~Task() noexcept(false) = default;
  // Called once, before the first run, with the numbers of images that chunks will have.
  virtual void prepare(kj::ArrayPtr<const uint> sizes) {}
  virtual void run(const Step& step, const Chunk& chunk) = 0;
};

// Work between stages, on no images or on all of them. Each of lanes 0 … parts - 1 does its part.
class BatchTask {
public:
  virtual ~BatchTask() noexcept(false) = default;
  virtual void run(const Step& step, uint part, uint parts) = 0;
};

// Returns a task that calls work(step, chunk) for each share of a chunk.
template <typename Work>
kj::Own<Task> newSharedTask(Work work) {
  struct WorkTask final: public Task {
    explicit WorkTask(Work&& work): work(kj::mv(work)) {}
    void run(const Step& step, const Chunk& chunk) override { work(step, chunk); }
    Work work;
  };
  return kj::heap<WorkTask>(kj::mv(work));
}

// Returns a task that calls work(step, chunk) once for a chunk that lanes share.
template <typename Work>
kj::Own<Task> newTask(Work work) {
  return newSharedTask([work = kj::mv(work)](const Step& step, const Chunk& chunk) mutable {
    if (chunk.share.isFirst()) work(step, chunk);
  });
}

// Calls work(n, the address of image n in each of `places`) for each image n of a chunk, counted
// over the batch.
template <typename Work, typename... Places>
void eachImage(const Step& step, const Chunk& chunk, Work work, Places... places) {
  auto each = [&](auto... at) {
    for (uint n = 0; n < chunk.images; ++n) {
      work(chunk.first + n, at...);
      ((at += places.stride_bytes()), ...);
    }
  };
  each(step.memory.at(places, chunk)...);
}

// Returns a task that calls work(step, n, the address of image n in each of `places`) for each
// image n of a chunk.
template <typename Work, typename... Places>
kj::Own<Task> newImageTask(Work work, Places... places) {
  return newTask([=](const Step& step, const Chunk& chunk) {
    eachImage(
        step, chunk, [&](uint n, auto... at) { work(step, n, at...); }, places...);
  });
}

// Returns a task for images of `values` values, each of which is computed independently of the
// others. It calls work(step, count, the addresses of the values) for a part of each image.
template <typename Work, typename... Places>
kj::Own<Task> newValueTask(size_t values, Work work, Places... places) {
  constexpr size_t TOGETHER = 64;  // a whole number of vectors
  return newSharedTask([=](const Step& step, const Chunk& chunk) {
    auto share = chunk.share.of((values + TOGETHER - 1) / TOGETHER);
    size_t begin = share.begin * TOGETHER, end = kj::min(share.end * TOGETHER, values);
    if (begin == end) return;
    eachImage(
        step, chunk,
        [&](uint, auto... at) {
          work(step, end - begin, (at + begin * bytesOf(places.element()))...);
        },
        places...);
  });
}

// Returns a task that calls work(step, part, parts).
template <typename Work>
kj::Own<BatchTask> newBatchTask(Work work) {
  struct WorkTask final: public BatchTask {
    explicit WorkTask(Work&& work): work(kj::mv(work)) {}
    void run(const Step& step, uint part, uint parts) override { work(step, part, parts); }
    Work work;
  };
  return kj::heap<WorkTask>(kj::mv(work));
}

// Returns a task that one lane does as a whole: work(step, lane). Tasks of neighbouring turns go to
// different lanes.
template <typename Work>
kj::Own<BatchTask> newWholeTask(uint turn, Work work) {
  return newBatchTask([turn, work = kj::mv(work)](const Step& step, uint part, uint parts) mutable {
    if (turn % parts == part) work(step, part);
  });
}

// The size of a blocked image, or of a group of them.
struct Extent {
  uint channels;
  size_t blocks;
  size_t pixels;
  uint block;  // channels
  uint group;  // images

  Extent(Shape shape, uint block, uint group = 1)
      : channels(shape.channels),
        blocks((shape.channels + block - 1) / block),
        pixels(size_t(shape.height) * shape.width),
        block(block),
        group(group) {}
  // How many runs of `block` values a block has: one for each pixel of each image.
  size_t runs() const { return pixels * group; }
  size_t values() const { return blocks * runs() * block; }
};

// Returns a task for images of this extent, whose blocks of channels are computed independently of
// each other. It calls work(step, n, blocks, the addresses of image n from the first of these
// blocks on) for some blocks of each image.
template <typename Work, typename... Places>
kj::Own<Task> newBlockTask(Extent extent, Work work, Places... places) {
  return newSharedTask([=](const Step& step, const Chunk& chunk) {
    auto blocks = chunk.share.of(extent.blocks);
    size_t skipped = blocks.begin * extent.runs() * extent.block;
    if (blocks.size() == 0) return;
    eachImage(
        step, chunk,
        [&](uint n, auto... at) {
          work(step, n, blocks, (at + skipped * bytesOf(places.element()))...);
        },
        places...);
  });
}

// In place: x = f(x); gradient = gradient · f'(x) from the outputs `y`.
kj::Own<Task> activate(Activation::Function function, Extent extent, Place x);
kj::Own<Task> activateBackward(
    Activation::Function function, Extent extent, Place y, Place gradient);

// to = gelu(from); dx = gradient · gelu'(x), or dx += that.
kj::Own<Task> gelu(Extent extent, Place from, Place to);
kj::Own<Task> geluBackward(Extent extent, Place x, Place gradient, Place dx, Write write);

// to = factor · from, or to += factor · from. Both for the op and for its gradient.
kj::Own<Task> scale(Extent extent, float factor, Place from, Place to, Write write);

// to = dropout(from), or to += that. `from` is the input of the node, or the gradient of its
// output.
kj::Own<Task> drop(
    const Dropout& op, NodeId node, Extent extent, Batch batch, Place from, Place to, Write write);
// to = dropout(from), for images of `size` floats in plain order.
kj::Own<Task> dropRows(
    const Dropout& op, NodeId node, size_t size, Batch batch, Place from, Place to);

// `index` is where max stores the places of the maxima for its backward pass, as 16-bit words. Null
// for average, and where there is no backward pass.
kj::Own<Task> pool(const Pool& op, Shape in, Shape out, uint block, Place x, Place y, Place index);
kj::Own<Task> poolBackward(const Pool& op, Shape in, Shape out, uint block, Place gradient,
    Place index, Place dx, Write write);

// The results of the loss for each row: the loss, and whether the row was right: 1 yes, 0 no, -1 if
// its label is -1.
struct Verdicts {
  kj::Array<double> losses;
  kj::Array<int8_t> correct;
};
// Logits are rows of floats of `classes` each, and perhaps of more that are not read. `gradient` is
// null where there is no backward pass.
kj::Own<Task> loss(
    double smoothing, uint classes, Batch batch, Place logits, Place gradient, Verdicts& verdicts);

}  // namespace nn::cpu
