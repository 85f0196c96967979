#include "nn/cpu/copies.h"

#include <kj/debug.h>
#include <string.h>

namespace nn::cpu {
namespace {

// Single values, as floats.
float read(const float& value) {
  return value;
}
float read(const Bfloat16& value) {
  uint32_t bits = uint32_t(value.bits) << 16;
  float x;
  memcpy(&x, &bits, sizeof(x));
  return x;
}
void write(float x, float& value) {
  value = x;
}
// The nearest, of two the even one. What is no number stays so.
void write(float x, Bfloat16& value) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof(bits));
  uint32_t rounded = bits + 0x7fff + (bits >> 16 & 1);
  value.bits = x == x ? rounded >> 16 : bits >> 16 | 0x40;
}

class Copy final: public Task {
public:
  Copy(size_t values, Place from, Place to, Write write)
      : values(values), from(from), to(to), write(write) {
    KJ_REQUIRE(!widens() || write == Write::SET);
  }

  void run(const Step& step, const Chunk& chunk) override {
    const byte* source = step.memory.at(from, chunk);
    byte* target = step.memory.at(to, chunk);
    for (uint n = 0; n < chunk.images; ++n) {
      if (from.element() == to.element()) {
        step.kernelsFor(to).copy(source, target, write, values);
      } else if (widens()) {
        step.kernelsFor(from).widen(source, reinterpret_cast<float*>(target), values);
      } else {
        step.kernelsFor(to).round(reinterpret_cast<const float*>(source), target, write, values);
      }
      source += from.stride_bytes();
      target += to.stride_bytes();
    }
  }

private:
  size_t values;
  Place from, to;
  Write write;

  bool widens() const {
    return from.element() == Element::BFLOAT16 && to.element() == Element::FLOAT32;
  }
};

// E: what both hold.
template <typename E>
class CopyChannels final: public Task {
public:
  CopyChannels(Extent from, Place fromPlace, uint fromChannel, Extent to, Place toPlace,
      uint toChannel, uint channels, Write how)
      : from(from),
        fromPlace(fromPlace),
        fromChannel(fromChannel),
        to(to),
        toPlace(toPlace),
        toChannel(toChannel),
        channels(channels),
        how(how) {}

  void run(const Step& step, const Chunk& chunk) override {
    auto* source = reinterpret_cast<const E*>(step.memory.at(fromPlace, chunk));
    auto* target = reinterpret_cast<E*>(step.memory.at(toPlace, chunk));
    for (uint n = 0; n < chunk.images; ++n) {
      for (uint c = 0; c < channels; ++c) {
        one(source + start(from, fromChannel + c), target + start(to, toChannel + c));
      }
      if (toChannel + channels == to.channels && how == Write::SET) {
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
  Write how;

  // Where the first pixel of channel `c` lies in an image.
  static size_t start(const Extent& extent, size_t c) {
    return c / extent.block * extent.block * extent.pixels + c % extent.block;
  }
  void one(const E* source, E* target) const {
    for (size_t i = 0; i < to.pixels * to.block; i += to.block) {
      if (how == Write::ADD) {
        write(read(target[i]) + read(source[i]), target[i]);
      } else {
        target[i] = source[i];
      }
    }
  }
  void zero(E* target) const {
    for (size_t i = 0; i < to.pixels * to.block; i += to.block) write(0, target[i]);
  }
};

// E: what the blocked image holds.
template <typename E>
class Block final: public Task {
public:
  Block(Extent extent, Place plain, Place blocked, Write how)
      : extent(extent), plain(plain), blocked(blocked), how(how) {}

  void run(const Step& step, const Chunk& chunk) override {
    const float* source = step.memory.floatsAt(plain, chunk);
    auto* target = reinterpret_cast<E*>(step.memory.at(blocked, chunk));
    for (uint n = 0; n < chunk.images; ++n, source += plain.stride(), target += blocked.stride()) {
      if (how == Write::SET) {
        image<Write::SET>(source, target);
      } else {
        image<Write::ADD>(source, target);
      }
    }
  }

private:
  Extent extent;
  Place plain, blocked;
  Write how;

  template <Write W>
  void image(const float* source, E* target) const {
    size_t B = extent.block, P = extent.pixels;
    for (size_t b = 0; b < extent.blocks; ++b, target += B * P) {
      size_t inside = kj::min(B, extent.channels - b * B);
      for (size_t i = 0; i < P; ++i) {
        for (size_t c = 0; c < inside; ++c) {
          float value = source[(b * B + c) * P + i];
          E& to = target[i * B + c];
          write(W == Write::ADD ? read(to) + value : value, to);
        }
        if (W == Write::SET) {
          for (size_t c = inside; c < B; ++c) write(0, target[i * B + c]);
        }
      }
    }
  }
};

template <typename From, typename To>
class Unblock final: public Task {
public:
  Unblock(Extent extent, Place blocked, Place plain)
      : extent(extent), blocked(blocked), plain(plain) {}

  void run(const Step& step, const Chunk& chunk) override {
    auto* source = reinterpret_cast<const From*>(step.memory.at(blocked, chunk));
    auto* target = reinterpret_cast<To*>(step.memory.at(plain, chunk));
    size_t B = extent.block, P = extent.pixels;
    for (uint n = 0; n < chunk.images; ++n, source += blocked.stride(), target += plain.stride()) {
      for (size_t c = 0; c < extent.channels; ++c) {
        const From* channel = source + c / B * B * P + c % B;
        for (size_t i = 0; i < P; ++i) write(read(channel[i * B]), target[c * P + i]);
      }
    }
  }

private:
  Extent extent;
  Place blocked, plain;
};

}  // namespace

kj::Own<Task> copy(size_t values, Place from, Place to, Write write) {
  return kj::heap<Copy>(values, from, to, write);
}
kj::Own<Task> copy(Extent extent, Place from, Place to, Write write) {
  return kj::heap<Copy>(extent.values(), from, to, write);
}
kj::Own<Task> copyChannels(Extent from, Place fromPlace, uint fromChannel, Extent to, Place toPlace,
    uint toChannel, uint channels, Write write) {
  KJ_REQUIRE(fromPlace.element() == toPlace.element());
  if (toPlace.element() == Element::FLOAT32) {
    return kj::heap<CopyChannels<float>>(
        from, fromPlace, fromChannel, to, toPlace, toChannel, channels, write);
  }
  return kj::heap<CopyChannels<Bfloat16>>(
      from, fromPlace, fromChannel, to, toPlace, toChannel, channels, write);
}
kj::Own<Task> block(Extent extent, Place plain, Place blocked, Write write) {
  if (blocked.element() == Element::FLOAT32) {
    return kj::heap<Block<float>>(extent, plain, blocked, write);
  }
  return kj::heap<Block<Bfloat16>>(extent, plain, blocked, write);
}
kj::Own<Task> unblock(Extent extent, Place blocked, Place plain) {
  if (blocked.element() == Element::FLOAT32) {
    KJ_REQUIRE(plain.element() == Element::FLOAT32);
    return kj::heap<Unblock<float, float>>(extent, blocked, plain);
  }
  if (plain.element() == Element::FLOAT32) {
    return kj::heap<Unblock<Bfloat16, float>>(extent, blocked, plain);
  }
  return kj::heap<Unblock<Bfloat16, Bfloat16>>(extent, blocked, plain);
}

}  // namespace nn::cpu
