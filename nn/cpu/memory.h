// nn/cpu/memory.h: the buffers of a program, and their places in memory.
#pragma once

#include <kj/array.h>
#include <kj/common.h>
#include <kj/debug.h>
#include <kj/memory.h>
#include <kj/vector.h>
#include <stdint.h>

#include "nn/element.h"
#include "nn/lifetimes.h"
#include "nn/network/graph.h"

namespace nn::cpu {

using kj::byte;
using kj::uint;

// A lane's share of a chunk: one of the parts 0 … parts - 1 of the work of each task. There is more
// than one part if a batch has fewer groups of images than there are lanes.
struct Share {
  uint part = 0, parts = 1;

  bool isFirst() const { return part == 0; }
  Range of(size_t count) const { return {count * part / parts, count * (part + 1) / parts}; }
};

// The images first … first + images - 1 of a batch. One lane (a thread with its own scratch memory)
// works on them, or all lanes together: see Share. If images lie together in groups, `first` and
// `images` count groups: see Batch.
struct Chunk {
  uint lane;
  uint first;
  uint images;
  bool opening;  // the lane's first chunk of this stage
  Share share = {};

  // Lanes that share a chunk have its images in the scratch memory of the first one.
  uint home() const { return share.parts > 1 ? 0 : lane; }
};

// Values that a step needs from one moment to another. The moments of a batch buffer are stages.
// Those of a scratch buffer are the tasks of its stage.
struct Buffer: public Tenant {
  enum Home {
    PIXELS,   // the batch that the caller handed in
    BATCH,    // all images of the batch, or anything else that all lanes share
    SCRATCH,  // one chunk, in memory of which each lane has its own
  } home;
  Element element = Element::FLOAT32;
  size_t imageValues = 0;  // of an image, or of a group; 0 if it does not hold images
  size_t values = 0;       // in all
};

// The place of a tensor's images: the images of a buffer, or a run of channels in each of them.
struct Place {
  Buffer* buffer = nullptr;
  size_t shift = 0;  // values from the start of an image

  Element element() const { return buffer->element; }
  size_t stride() const { return buffer->imageValues; }
  size_t stride_bytes() const { return stride() * bytesOf(element()); }
};

// The addresses at which the homes begin.
struct Addresses {
  const float* pixels = nullptr;
  byte* batch = nullptr;
  byte* scratch = nullptr;
  size_t scratchStride_bytes = 0;  // from one lane's to the next one's

  byte* of(const Buffer& buffer, uint lane) const {
    if (buffer.home == Buffer::BATCH) return batch + buffer.offset;
    return scratch + lane * scratchStride_bytes + buffer.offset;
  }
  // Returns the address of the first image of `chunk` in `place`. The others follow at intervals of
  // place.stride_bytes().
  byte* at(const Place& place, const Chunk& chunk) const {
    auto& buffer = *place.buffer;
    size_t first =
        place.shift + (buffer.home == Buffer::SCRATCH ? 0 : chunk.first * place.stride());
    byte* home = buffer.home == Buffer::PIXELS ? reinterpret_cast<byte*>(const_cast<float*>(pixels))
                                               : of(buffer, chunk.home());
    return home + first * bytesOf(buffer.element);
  }
  // The same for places and buffers that hold floats.
  float* floatsOf(const Buffer& buffer, uint lane) const {
    KJ_REQUIRE(buffer.element == Element::FLOAT32);
    return reinterpret_cast<float*>(of(buffer, lane));
  }
  float* floatsAt(const Place& place, const Chunk& chunk) const {
    KJ_REQUIRE(place.element() == Element::FLOAT32);
    return reinterpret_cast<float*>(at(place, chunk));
  }
};

// Sets the bytes of the buffers and their offsets, in whole cache lines: see nn::pack().
size_t pack(kj::ArrayPtr<Buffer* const> buffers);

// Zeroed bytes on a page boundary, which take memory once they are touched. Large arenas get huge
// pages if the system has them, because a step's values take more small pages than the processor's
// TLB has entries.
class Arena {
public:
  explicit Arena(size_t size_bytes);
  ~Arena() noexcept;
  KJ_DISALLOW_COPY(Arena);
  byte* begin() { return start; }
  uint64_t bytes() const { return size_bytes; }

private:
  size_t size_bytes;
  size_t mapped_bytes;
  byte* mapped;
  byte* start;
};

}  // namespace nn::cpu
