// nn/cuda/device_input.h: brings the batches of a program to its device.
#pragma once

#include "nn/cuda/device.h"
#include "nn/program.h"

namespace nn::cuda {

// The labels and other small parts of a batch have one place on the device, and are copied there in
// the order of the work. Raw images are large, so they have two places. They are copied from the
// caller's memory to the free place while the device works on the previous step. Images that are
// kept are not copied.
//
// The order of calls: set a batch, bring(), work that reads the images, release(). The next batch
// may be set before that work is done.
class DeviceInput final: public RawInput {
public:
  // N rows for `graph`.
  DeviceInput(Device& device, uint images, const Graph& graph);
  KJ_DISALLOW_COPY(DeviceInput);

  // Places on the device.
  const float* pixels() { return reinterpret_cast<float*>(pixelsThere->begin()); }
  const int32_t* labels() { return reinterpret_cast<int32_t*>(there->begin()); }
  const DropoutMask* masks() {
    return reinterpret_cast<DropoutMask*>(there->begin() + places.masks);
  }

  void set(kj::ArrayPtr<const float> batch, kj::ArrayPtr<const int32_t> labels,
      kj::ArrayPtr<const uint64_t> draws);
  // From now on images are raw, and pixels() is no longer valid.
  void takeRaw(const RawImages& images, uint64_t kept);
  // Returns the kernel that replaces `importing` if images are raw.
  Augment augment(const ImportPixels& importing);

  // Throws if there is no batch for this phase.
  void require(Phase phase) const;
  // Copies the batch that was set last to the device, except for copies that were already started.
  void bring();
  // To be called once the work that reads the images was asked for.
  void release();

  uint64_t memory_bytes() const;

  // ---- RawInput

  kj::Array<byte> allocate(size_t bytes) override;
  void keep(uint64_t first, kj::ArrayPtr<const byte> images) override;
  void setBatch(const RawBatch& batch) override;
  void awaitBatch() override;

private:
  // The layout in memory of a batch without its images.
  struct Places {
    size_t masks;
    size_t rows;
    size_t size;
  };
  // One of two that take turns.
  struct Turn {
    kj::Own<Memory> here;    // Places on the host
    kj::Own<Mark> isThere;   // after this mark, `here` is copied, and may be overwritten
    kj::Own<Mark> areThere;  // after it, the turn's raw images are on the device, unless kept
    kj::Own<Mark> areFree;   // after it, no work reads these images any more
  };
  // The part that is the same for all batches.
  struct Raw {
    size_t size;     // of an image
    uint64_t kept;   // images; 0: none
    Augment kernel;  // without the tensor that it writes
    kj::Vector<kj::Own<Memory>> constants;
    kj::Own<Memory> images;  // those that are kept, or those of both turns
  };

  static Places placesOf(uint images, uint masks);
  void fillMasks(kj::ArrayPtr<const uint64_t> draws, DropoutMask* to) const;
  Turn& next() { return turns[1 - current]; }
  // Fills the labels of the next turn and, if there are draws, its dropout masks. Returns the
  // memory of that turn on the host.
  byte* begin(kj::ArrayPtr<const int32_t> labels, kj::ArrayPtr<const uint64_t> draws);
  RawRow* rows() { return reinterpret_cast<RawRow*>(there->begin() + places.rows); }

  Device& device;
  const uint images;
  const Graph& graph;
  const Shape shape;
  const kj::Array<NodeId> dropping;
  const Places places;
  kj::Own<Memory> there;  // Places on the device
  kj::Own<Memory> pixelsHere;
  kj::Own<Memory> pixelsThere;
  Turn turns[2];
  uint current = 0;       // the turn whose batch the work reads
  bool isBrought = true;  // whether bring() was called for the batch that was set last
  bool isSet = false;
  bool isDrawn = false;
  kj::Maybe<Raw> raw;
};

}  // namespace nn::cuda
