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
// Rounds to the nearest bfloat16, ties to even. NaN stays NaN.
void write(float x, Bfloat16& value) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof(bits));
  uint32_t rounded = bits + 0x7fff + (bits >> 16 & 1);
  value.bits = x == x ? rounded >> 16 : bits >> 16 | 0x40;
}

// Returns the place of the first pixel of channel `c` in an image, or in a group of images.
size_t start(const Extent& extent, size_t c) {
  return c / extent.block * extent.block * extent.runs() + c % extent.block;
}

// Copies `COUNT` channels that lie together in both images.
template <typename E, size_t COUNT>
void copyTogether(const Extent& extent, const E* source, E* target, Write how) {
  constexpr size_t AHEAD = 2048;  // how many values ahead to prefetch
  for (size_t i = 0; i < extent.runs() * extent.block; i += extent.block) {
    __builtin_prefetch(source + i + AHEAD);
    __builtin_prefetch(target + i + AHEAD, 1);
    if (how == Write::ADD) {
      for (size_t c = 0; c < COUNT; ++c) {
        write(read(target[i + c]) + read(source[i + c]), target[i + c]);
      }
    } else {
      memcpy(target + i, source + i, COUNT * sizeof(E));
    }
  }
}

// E: the element of both images.
template <typename E>
kj::Own<Task> copyChannelsOf(Extent from, Place fromPlace, uint fromChannel, Extent to,
    Place toPlace, uint toChannel, uint channels, Write how) {
  constexpr uint TOGETHER = 16;
  bool isAligned = (fromChannel | toChannel | channels | from.block | to.block) % TOGETHER == 0;
  return newImageTask(
      [=](const Step&, uint, const byte* fromImage, byte* toImage) {
        auto source = reinterpret_cast<const E*>(fromImage);
        auto target = reinterpret_cast<E*>(toImage);
        for (uint c = 0; c < channels; c += isAligned ? TOGETHER : 1) {
          auto copy = isAligned ? copyTogether<E, TOGETHER> : copyTogether<E, 1>;
          copy(to, source + start(from, fromChannel + c), target + start(to, toChannel + c), how);
        }
        if (toChannel + channels < to.channels || how == Write::ADD) return;
        for (size_t c = to.channels; c < to.blocks * to.block; ++c) {
          E* padding = target + start(to, c);
          for (size_t i = 0; i < to.runs() * to.block; i += to.block) write(0, padding[i]);
        }
      },
      fromPlace, toPlace);
}

// E: the element of the blocked image.
template <typename E, Write HOW>
void blockImage(const Extent& extent, const float* source, E* target) {
  size_t B = extent.block, P = extent.pixels, step = B * extent.group;
  for (size_t b = 0; b < extent.blocks; ++b, target += step * P) {
    size_t inside = kj::min(B, extent.channels - b * B);
    for (size_t i = 0; i < P; ++i) {
      for (size_t c = 0; c < inside; ++c) {
        float value = source[(b * B + c) * P + i];
        E& to = target[i * step + c];
        write(HOW == Write::ADD ? read(to) + value : value, to);
      }
      if (HOW == Write::SET) {
        for (size_t c = inside; c < B; ++c) write(0, target[i * step + c]);
      }
    }
  }
}

template <typename E>
kj::Own<Task> blockTo(Extent extent, Batch batch, Place plain, Place blocked, Write how) {
  return newImageTask(
      [=](const Step&, uint n, const byte* from, byte* to) {
        auto source = reinterpret_cast<const float*>(from);
        auto target = reinterpret_cast<E*>(to);
        size_t size = extent.channels * extent.pixels;
        for (uint i = 0; i < batch.group; ++i, target += extent.block) {
          auto image = source + kj::min(i, batch.imagesOf(n) - 1) * size;
          if (how == Write::SET) {
            blockImage<E, Write::SET>(extent, image, target);
          } else {
            blockImage<E, Write::ADD>(extent, image, target);
          }
        }
      },
      plain, blocked);
}

template <typename From, typename To>
kj::Own<Task> unblockTo(Extent extent, Batch batch, Place blocked, Place plain) {
  return newImageTask(
      [=](const Step&, uint n, const byte* from, byte* to) {
        auto source = reinterpret_cast<const From*>(from);
        auto target = reinterpret_cast<To*>(to);
        size_t B = extent.block, P = extent.pixels, step = B * extent.group;
        for (uint i = 0; i < batch.imagesOf(n); ++i, source += B) {
          for (size_t c = 0; c < extent.channels; ++c, target += P) {
            const From* channel = source + c / B * step * P + c % B;
            for (size_t j = 0; j < P; ++j) write(read(channel[j * step]), target[j]);
          }
        }
      },
      blocked, plain);
}

}  // namespace

kj::Own<Task> copy(size_t values, Place from, Place to, Write write) {
  if (from.element() == to.element()) {
    return newValueTask(
        values,
        [=](const Step& step, size_t count, const byte* source, byte* target) {
          step.kernelsFor(to).copy(source, target, write, count);
        },
        from, to);
  }
  if (from.element() == Element::FLOAT32) {
    return newValueTask(
        values,
        [=](const Step& step, size_t count, const byte* source, byte* target) {
          step.kernelsFor(to).round(reinterpret_cast<const float*>(source), target, write, count);
        },
        from, to);
  }
  KJ_REQUIRE(write == Write::SET);
  return newValueTask(
      values,
      [=](const Step& step, size_t count, const byte* source, byte* target) {
        step.kernelsFor(from).widen(source, reinterpret_cast<float*>(target), count);
      },
      from, to);
}

kj::Own<Task> copy(Extent extent, Place from, Place to, Write write) {
  return copy(extent.values(), from, to, write);
}

kj::Own<Task> addRelu(Extent extent, Place from, Place to) {
  KJ_REQUIRE(from.element() == to.element());
  return newValueTask(
      extent.values(),
      [=](const Step& step, size_t count, const byte* source, byte* target) {
        step.kernelsFor(to).addRelu(source, target, count);
      },
      from, to);
}

kj::Own<Task> copyChannels(Extent from, Place fromPlace, uint fromChannel, Extent to, Place toPlace,
    uint toChannel, uint channels, Write write) {
  KJ_REQUIRE(fromPlace.element() == toPlace.element());
  auto make =
      toPlace.element() == Element::FLOAT32 ? copyChannelsOf<float> : copyChannelsOf<Bfloat16>;
  return make(from, fromPlace, fromChannel, to, toPlace, toChannel, channels, write);
}

kj::Own<Task> block(Extent extent, Batch batch, Place plain, Place blocked, Write write) {
  auto make = blocked.element() == Element::FLOAT32 ? blockTo<float> : blockTo<Bfloat16>;
  return make(extent, batch, plain, blocked, write);
}

kj::Own<Task> unblock(Extent extent, Batch batch, Place blocked, Place plain) {
  if (blocked.element() == Element::FLOAT32) {
    KJ_REQUIRE(plain.element() == Element::FLOAT32);
    return unblockTo<float, float>(extent, batch, blocked, plain);
  }
  auto make = plain.element() == Element::FLOAT32 ? unblockTo<Bfloat16, float>
                                                  : unblockTo<Bfloat16, Bfloat16>;
  return make(extent, batch, blocked, plain);
}

}  // namespace nn::cpu
