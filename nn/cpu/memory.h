// nn/cpu/memory.h: buffers whose lifetimes are known beforehand, packed into one block of memory.
#pragma once

#include <kj/array.h>
#include <kj/common.h>
#include <kj/memory.h>
#include <kj/vector.h>
#include <stdint.h>

namespace nn::cpu {

using kj::byte;
using kj::uint;

// The images first … first + images of a batch, worked on by one lane (a thread with its own
// scratch memory).
struct Chunk {
  uint lane;
  uint first;
  uint images;
  bool opening;  // the lane's first chunk of this phase
};

// Floats that live from one moment to another. A batch buffer's moments are phases, a scratch
// buffer's the tasks of its phase.
struct Buffer {
  enum Home {
    PIXELS,   // the batch that the caller handed in
    BATCH,    // all images of the batch, or anything else that all lanes see
    SCRATCH,  // one chunk, one for each lane
  } home;
  size_t imageFloats = 0;  // 0 if it does not hold images
  size_t floats = 0;       // in all
  uint first = kj::maxValue;
  uint last = 0;
  size_t offset = 0;  // floats from the start of its home; set by pack()

  void use(uint moment) {
    first = kj::min(first, moment);
    last = kj::max(last, moment);
  }
  void keep() {
    first = 0;
    last = kj::maxValue;
  }
};

// Where a tensor's images lie: the buffer's, or a run of channels in each of them.
struct Place {
  Buffer* buffer = nullptr;
  size_t shift = 0;  // floats from the start of an image

  size_t stride() const { return buffer->imageFloats; }
};

// The start addresses of the homes.
struct Memory {
  const float* pixels = nullptr;
  float* batch = nullptr;
  float* scratch = nullptr;
  size_t scratchStride = 0;  // floats from one lane's to the next one's

  float* of(const Buffer& buffer, uint lane) const {
    if (buffer.home == Buffer::BATCH) return batch + buffer.offset;
    return scratch + lane * scratchStride + buffer.offset;
  }
  // The first image of `chunk` in `place`; the others follow each place.stride().
  float* at(const Place& place, const Chunk& chunk) const {
    auto& buffer = *place.buffer;
    switch (buffer.home) {
      case Buffer::PIXELS:
        return const_cast<float*>(pixels) + chunk.first * buffer.imageFloats + place.shift;
      case Buffer::BATCH:
        return batch + buffer.offset + chunk.first * buffer.imageFloats + place.shift;
      case Buffer::SCRATCH:
        return of(buffer, chunk.lane) + place.shift;
    }
    KJ_UNREACHABLE;
  }
};

// Sets the offsets, in whole cache lines, so that buffers that live at the same moment do not
// overlap; returns the floats needed. Big ones first, each at the lowest place that is free.
size_t pack(kj::ArrayPtr<Buffer* const> buffers);

// Zeroed floats on a cache line's boundary.
class Arena {
public:
  explicit Arena(size_t floats);
  float* begin() { return start; }
  uint64_t bytes() const { return memory.size(); }

private:
  kj::Array<byte> memory;
  float* start;
};

}  // namespace nn::cpu
