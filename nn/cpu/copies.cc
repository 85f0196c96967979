#include "nn/cpu/copies.h"

namespace nn::cpu {
namespace {

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

}  // namespace

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

}  // namespace nn::cpu
