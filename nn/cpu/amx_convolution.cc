#include "nn/cpu/amx_convolution.h"

#include <string.h>

#include "nn/cpu/amx.h"

namespace nn::cpu {
namespace {

Bfloat16* bfloatsOf(const Addresses& memory, const Buffer& buffer) {
  return reinterpret_cast<Bfloat16*>(memory.floatsOf(buffer, 0));
}

// A task that calls work(step, chunk) for each share of a chunk, with `floats` of scratch memory.
template <typename Work>
kj::Own<Task> newScratchTask(Buffer& scratch, size_t floats, Work work) {
  struct WorkTask final: public Task {
    WorkTask(Buffer& scratch, size_t floats, Work&& work)
        : scratch(scratch), floats(floats), work(kj::mv(work)) {}
    void prepare(kj::ArrayPtr<const uint>) override { scratch.values = floats; }
    void run(const Step& step, const Chunk& chunk) override { work(step, chunk); }
    Buffer& scratch;
    size_t floats;
    Work work;
  };
  return kj::heap<WorkTask>(scratch, floats, kj::mv(work));
}

// The pairs of tiles of an output, and the tiles of the input that they are made of.
class Pairs {
public:
  kj::Array<AmxPair> list;  // one more than count(): see AmxPair::sources
  kj::Array<AmxSource> sources;

  // `eachTap` calls f(row, column, tap) for the pixels of the input that pixel (y, x) of the output
  // meets, some of which may lie outside of the image. A pixel has `tiles` tiles: one or two.
  template <typename EachTap>
  Pairs(Shape in, Shape out, uint tiles, EachTap eachTap) {
    kj::Vector<AmxPair> list;
    kj::Vector<AmxSource> sources;
    auto add = [&](const Pixel& a, const Pixel& b) {
      uint second = tiles - 1;
      list.add(AmxPair{a.tile, b.tile + second, uint32_t(sources.size())});
      for (size_t i: kj::indices(a.sources)) {
        sources.add(AmxSource{a.sources[i], b.sources[i] + second, a.taps[i]});
      }
    };
    // Pixels that wait for a second one with the same taps.
    kj::Vector<Pixel> waiting;
    for (uint y = 0; y < out.height; ++y) {
      for (uint x = 0; x < out.width; ++x) {
        Pixel pixel{(y * out.width + x) * tiles};
        eachTap(y, x, [&](int row, int column, uint tap) {
          if (row < 0 || column < 0 || row >= int(in.height) || column >= int(in.width)) return;
          pixel.sources.add((uint32_t(row) * in.width + column) * tiles);
          pixel.taps.add(tap);
        });
        if (tiles == 2) {
          add(pixel, pixel);
          continue;
        }
        bool isPaired = false;
        for (auto& other: waiting) {
          if (other.taps.asPtr() != pixel.taps.asPtr()) continue;
          add(other, pixel);
          other = kj::mv(waiting.back());
          waiting.removeLast();
          isPaired = true;
          break;
        }
        if (!isPaired) waiting.add(kj::mv(pixel));
      }
    }
    for (auto& alone: waiting) add(alone, alone);
    list.add(AmxPair{0, 0, uint32_t(sources.size())});
    this->list = list.releaseAsArray();
    this->sources = sources.releaseAsArray();
  }

  size_t count() const { return list.size() - 1; }

private:
  struct Pixel {
    uint32_t tile;
    kj::Vector<uint32_t> sources = {}, taps = {};
  };
};

class AmxConvolution final: public Convolution {
public:
  AmxConvolution(ConvolutionShape shape, ConvolutionArrays arrays, const AmxLoops& loops)
      : shape(shape),
        arrays(arrays),
        loops(loops),
        taps(shape.kernelHeight * shape.kernelWidth),
        inputs(shape.in.channels),
        outputs(shape.out.channels),
        isPlain(shape.canBePlain && shape.in.channels <= PLAIN_CHANNELS),
        ahead(forwardPairs()) {
    if (!isPlain) return;
    inputs *= taps;
    taps = 1;
    findRuns();
  }

  InputLayouts inputLayouts() const override {
    auto layout = isPlain ? Layout::PLAIN : Layout::BLOCKED;
    return {layout, layout};
  }
  kj::Own<Task> forward(Place x, Place y, Buffer& scratch) override;
  kj::Own<Task> backwardWeights(Place x, Place dy, Buffer& scratch) override;
  kj::Own<Task> backwardData(Place dy, Place dx, Write write, Buffer& scratch) override;
  bool canAdd() const override { return true; }
  kj::Own<BatchTask> packForward(uint turn) override;
  kj::Own<BatchTask> packBackward(uint turn) override;
  kj::Own<BatchTask> sumGradient(uint turn) override;
  kj::Array<kj::String> implementations() const override {
    auto names = kj::heapArrayBuilder<kj::String>(1);
    names.add(kj::str("amx"));
    return names.finish();
  }

private:
  // Up to here, a block of 32 channels per place of the window would be mostly padding.
  static constexpr uint PLAIN_CHANNELS = 4;

  const ConvolutionShape shape;
  const ConvolutionArrays arrays;
  const AmxLoops& loops;
  size_t taps, inputs, outputs;  // of the convolution that the tiles compute
  const bool isPlain;
  const Pairs ahead;
  kj::Maybe<Pairs> back;    // of the gradient of the input
  kj::Vector<AmxRun> runs;  // of a window over plain pixels

  size_t outPixels() const { return size_t(shape.out.height) * shape.out.width; }
  size_t inPixels() const { return size_t(shape.in.height) * shape.in.width; }
  size_t forwardBfloats() const { return amxTiles(outputs) * taps * amxBlocks(inputs) * AMX_TILE; }
  size_t backwardBfloats() const { return amxTiles(inputs) * taps * amxBlocks(outputs) * AMX_TILE; }
  size_t weightSums() const { return amxTiles(inputs) * amxTiles(outputs) * taps * AMX_SUMS; }
  size_t sumFloats() const { return weightSums() + amxBlocks(outputs) * AMX_CHANNELS; }

  // Each sum is over some of the groups. If there are fewer groups than lanes, it is over some rows
  // of every group instead. Each lane computes at least one sum. There are at least two sums, so
  // that one lane adds in the same order as two.
  bool sumsRows() const {
    uint groups = shape.batch.groups();
    return groups == 1 || groups < shape.lanes;
  }
  uint sums() const {
    uint most = kj::max(shape.lanes, 2u);
    return sumsRows() ? most : kj::min(most, shape.batch.groups());
  }
  Range groupsOf(uint sum) const {
    return sumsRows() ? Range{0, shape.batch.groups()}
                      : Share{sum, sums()}.of(shape.batch.groups());
  }
  Range rowsOf(uint sum) const {
    return sumsRows() ? Share{sum, sums()}.of(shape.out.height) : Range{0, shape.out.height};
  }
  // The sums that a lane computes.
  Range sumsOf(const Share& share) const {
    return sumsRows() ? share.of(sums()) : Range{0, sums()};
  }

  // The values of a pixel of a group, and its tiles, in a block of channels.
  size_t pixelValues() const { return loops.images * AMX_CHANNELS; }
  uint pixelTiles() const { return loops.images / AMX_SIDE; }

  Pairs forwardPairs() const {
    if (isPlain) {
      // One row, whose patches lie side by side.
      Shape row = {0, 1, shape.out.width};
      return Pairs(row, row, pixelTiles(), [](uint y, uint x, auto f) { f(y, x, 0); });
    }
    return Pairs(shape.in, shape.out, pixelTiles(), [&](uint y, uint x, auto f) {
      int top = int(y * shape.op.stride) - int(shape.op.pad);
      int left = int(x * shape.op.stride) - int(shape.op.pad);
      for (uint u = 0; u < shape.kernelHeight; ++u) {
        for (uint v = 0; v < shape.kernelWidth; ++v) {
          f(top + int(u), left + int(v), u * shape.kernelWidth + v);
        }
      }
    });
  }

  Pairs backwardPairs() const {
    int stride = shape.op.stride;
    return Pairs(shape.out, shape.in, pixelTiles(), [&](uint y, uint x, auto f) {
      for (uint u = 0; u < shape.kernelHeight; ++u) {
        for (uint v = 0; v < shape.kernelWidth; ++v) {
          int row = int(y + shape.op.pad) - int(u), column = int(x + shape.op.pad) - int(v);
          if (row < 0 || column < 0 || row % stride != 0 || column % stride != 0) continue;
          f(row / stride, column / stride, u * shape.kernelWidth + v);
        }
      }
    });
  }

  // Channel i of the tiles is value (row, column) of the window, i = row × kernel width + column.
  void findRuns() {
    size_t width = amxPaddedWidth(imageWindow()), kernel = shape.kernelWidth;
    for (size_t i = 0, count; i < inputs; i += count) {
      size_t column = i % kernel, inBlock = i % AMX_CHANNELS;
      count = kj::min(AMX_RUN, kj::min(kernel - column, AMX_CHANNELS - inBlock));
      runs.add(AmxRun{uint32_t(i / kernel * width + column),
          uint32_t(i / AMX_CHANNELS * patchPlane() + inBlock), uint8_t((1u << count) - 1)});
    }
  }

  // One block of channels of one row of the output.
  size_t patchPlane() const { return shape.out.width * pixelValues(); }
  size_t patchBfloats() const { return amxBlocks(inputs) * patchPlane(); }
  // The rows of the input that a window sees.
  size_t gatherBfloats() const {
    return shape.in.channels * shape.kernelHeight * amxPaddedWidth(imageWindow());
  }

  // Writes the windows of row `y` of the output as pixels of a group. `images` images begin at
  // `pixels`. The last one also fills the group. `scratch` has room for gatherBfloats().
  void gatherRow(
      const float* pixels, size_t y, uint images, Bfloat16* to, Bfloat16* scratch) const {
    auto window = imageWindow();
    size_t lastBlock = (amxBlocks(inputs) - 1) * patchPlane();
    for (uint n = 0; n < loops.images; ++n, to += AMX_CHANNELS) {
      const float* image = pixels + kj::min(n, images - 1) * shape.in.size();
      loops.gatherRow(window, shape.in.channels, runs.begin(), runs.size(), lastBlock, image, y, to,
          pixelValues(), scratch);
    }
  }

  AmxWindow imageWindow() const {
    return {.inHeight = shape.in.height,
        .inWidth = shape.in.width,
        .outHeight = shape.out.height,
        .outWidth = shape.out.width,
        .kernelHeight = shape.kernelHeight,
        .kernelWidth = shape.kernelWidth,
        .stride = shape.op.stride,
        .pad = shape.op.pad,
        .inTiles = amxTiles(inputs),
        .outTiles = amxTiles(outputs),
        .outPixels = outPixels()};
  }

  // The arguments of accumulate().
  AmxWindow window() const {
    auto window = imageWindow();
    if (isPlain) {
      // Row by row of the output.
      window.inHeight = window.outHeight = 1;
      window.inWidth = shape.out.width;
      window.kernelHeight = window.kernelWidth = window.stride = 1;
      window.pad = 0;
    }
    return window;
  }

  AmxProduct productOf(const Pairs& pairs, Place to) const {
    return {.pairs = pairs.list.begin(),
        .sources = pairs.sources.begin(),
        .taps = taps,
        .bias = nullptr,
        .outIsFloats = to.element() == Element::FLOAT32};
  }
};

kj::Own<Task> AmxConvolution::forward(Place x, Place y, Buffer& scratch) {
  arrays.forwardWeights->values = forwardBfloats() / 2 + amxTiles(outputs) * AMX_SIDE;
  size_t scratchFloats = isPlain ? (patchBfloats() + gatherBfloats() + 1) / 2 : 0;
  return newScratchTask(
      scratch, scratchFloats, [=, this, &scratch](const Step& step, const Chunk& chunk) {
        auto* weights = bfloatsOf(step.memory, *arrays.forwardWeights);
        auto product = productOf(ahead, y);
        product.inBlocks = amxBlocks(inputs);
        product.inStride = (isPlain ? shape.out.width : inPixels()) * pixelTiles();
        product.outTiles = amxTiles(outputs);
        product.outStride = outPixels() * pixelTiles();
        product.weights = weights;
        if (shape.addsBias) product.bias = reinterpret_cast<float*>(weights + forwardBfloats());
        product.write = Write::SET;
        const byte* from = step.memory.at(x, chunk);
        byte* to = step.memory.at(y, chunk);
        auto rows = chunk.share.of(shape.out.height), pairs = chunk.share.of(ahead.count());
        for (uint n = 0; n < chunk.images; ++n, from += x.stride_bytes(), to += y.stride_bytes()) {
          product.out = to;
          if (!isPlain) {
            product.in = reinterpret_cast<const Bfloat16*>(from);
            loops.multiply(product, pairs.begin, pairs.end);
            continue;
          }
          auto* row = reinterpret_cast<Bfloat16*>(step.memory.floatsOf(scratch, chunk.lane));
          product.in = row;
          for (auto r = rows.begin; r < rows.end; ++r) {
            gatherRow(reinterpret_cast<const float*>(from), r,
                shape.batch.imagesOf(chunk.first + n), row, row + patchBfloats());
            product.out = to + r * shape.out.width * pixelValues() * bytesOf(y.element());
            loops.multiply(product, 0, ahead.count());
          }
        }
      });
}

kj::Own<Task> AmxConvolution::backwardWeights(Place x, Place dy, Buffer& scratch) {
  auto window = this->window();
  arrays.sums->values = sums() * sumFloats();
  size_t scratchBfloats = loops.scratchValues(window);
  if (isPlain) scratchBfloats = patchBfloats() + kj::max(scratchBfloats, gatherBfloats());
  return newScratchTask(
      scratch, (scratchBfloats + 1) / 2, [=, this, &scratch](const Step& step, const Chunk& chunk) {
        auto* work = reinterpret_cast<Bfloat16*>(step.memory.floatsOf(scratch, chunk.lane));
        const byte* images = step.memory.at(x, chunk);
        const byte* gradients = step.memory.at(dy, chunk);
        for (uint n = chunk.first; n < chunk.first + chunk.images; ++n) {
          auto* gradient = reinterpret_cast<const Bfloat16*>(gradients);
          auto own = sumsOf(chunk.share);
          for (auto sum = own.begin; sum < own.end; ++sum) {
            auto groups = groupsOf(sum), rows = rowsOf(sum);
            if (n < groups.begin || n >= groups.end) continue;
            float* to = step.memory.floatsOf(*arrays.sums, 0) + sum * sumFloats();
            if (n == groups.begin) memset(to, 0, sumFloats() * sizeof(float));
            if (isPlain) {
              for (auto r = rows.begin; r < rows.end; ++r) {
                auto* scratch = work + patchBfloats();
                gatherRow(reinterpret_cast<const float*>(images), r, shape.batch.imagesOf(n), work,
                    scratch);
                loops.accumulate(window, work, gradient + r * shape.out.width * pixelValues(), 0, 1,
                    to, scratch);
              }
            } else {
              loops.accumulate(window, reinterpret_cast<const Bfloat16*>(images), gradient,
                  rows.begin, rows.end, to, work);
            }
            if (shape.addsBias && rows.begin == 0 && rows.end > 0) {
              loops.addChannels(gradient, amxBlocks(outputs), outPixels(), to + weightSums());
            }
          }
          images += x.stride_bytes();
          gradients += dy.stride_bytes();
        }
      });
}

kj::Own<Task> AmxConvolution::backwardData(Place dy, Place dx, Write write, Buffer&) {
  arrays.backwardWeights->values = backwardBfloats() / 2;
  auto& pairs = back.emplace(backwardPairs());
  return newSharedTask([=, this, &pairs](const Step& step, const Chunk& chunk) {
    auto product = productOf(pairs, dx);
    product.inBlocks = amxBlocks(outputs);
    product.inStride = outPixels() * pixelTiles();
    product.outTiles = amxTiles(inputs);
    product.outStride = inPixels() * pixelTiles();
    product.weights = bfloatsOf(step.memory, *arrays.backwardWeights);
    product.write = write;
    const byte* from = step.memory.at(dy, chunk);
    byte* to = step.memory.at(dx, chunk);
    auto share = chunk.share.of(pairs.count());
    for (uint n = 0; n < chunk.images; ++n, from += dy.stride_bytes(), to += dx.stride_bytes()) {
      product.in = reinterpret_cast<const Bfloat16*>(from);
      product.out = to;
      loops.multiply(product, share.begin, share.end);
    }
  });
}

kj::Own<BatchTask> AmxConvolution::packForward(uint turn) {
  return newWholeTask(turn, [this](const Step& step, uint) {
    auto* packed = bfloatsOf(step.memory, *arrays.forwardWeights);
    loops.packWeights(
        arrays.weightsIn(step.memory), outputs, inputs * taps, inputs, taps, taps, packed);
    if (!shape.addsBias) return;
    auto* bias = reinterpret_cast<float*>(packed + forwardBfloats());
    memset(bias, 0, amxTiles(outputs) * AMX_SIDE * sizeof(float));
    memcpy(bias, arrays.biasIn(step.memory, outputs * inputs * taps), outputs * sizeof(float));
  });
}

kj::Own<BatchTask> AmxConvolution::packBackward(uint turn) {
  return newWholeTask(turn, [this](const Step& step, uint) {
    loops.packWeights(arrays.weightsIn(step.memory), inputs, taps, outputs, inputs * taps, taps,
        bfloatsOf(step.memory, *arrays.backwardWeights));
  });
}

// Adds the sums in their order into the flat gradient. Each lane does a part of the outputs.
kj::Own<BatchTask> AmxConvolution::sumGradient(uint) {
  return newBatchTask([this, window = window()](const Step& step, uint part, uint parts) {
    const float* first = step.memory.floatsOf(*arrays.sums, 0);
    size_t tiles = amxTiles(outputs);
    for (size_t tile = tiles * part / parts; tile < tiles * (part + 1) / parts; ++tile) {
      loops.unpackSums(
          window, first, sums(), sumFloats(), tile, outputs, inputs, arrays.weightsGradient);
    }
    if (part > 0 || arrays.biasGradient == nullptr) return;
    for (size_t k = 0; k < outputs; ++k) {
      float sum = 0;
      for (uint i = 0; shape.addsBias && i < sums(); ++i) {
        sum += first[i * sumFloats() + weightSums() + k];
      }
      arrays.biasGradient[k] = sum;
    }
  });
}

}  // namespace

kj::Own<Convolution> makeAmxConvolution(
    ConvolutionShape shape, ConvolutionArrays arrays, const AmxLoops& loops) {
  KJ_REQUIRE(shape.element == Element::BFLOAT16);
  return kj::heap<AmxConvolution>(shape, arrays, loops);
}

}  // namespace nn::cpu
