// nn/cuda/input.h: a program's batches on their way to the device.
#pragma once

#include "nn/cuda/device.h"
#include "nn/program.h"

namespace nn::cuda {

// What work reads of a batch lies in one place of the device, and goes there in the order of the
// work; but raw images, which are large, have two places, and go to the one that is free beside the
// work of the step before, out of the caller's memory. Images that are kept go nowhere.
//
// A batch is set; then come bring(), work that reads the images, and release(). The next may be set
// before that work is done.
class Input final: public RawInput {
public:
  // N rows for `graph`.
  Input(Device& device, uint images, const Graph& graph);
  KJ_DISALLOW_COPY(Input);

  // Places on the device.
  const float* pixels() { return reinterpret_cast<float*>(pixelsThere->begin()); }
  const int32_t* labels() { return reinterpret_cast<int32_t*>(there->begin()); }
  const DropoutMaskOfRow* masks() {
    return reinterpret_cast<DropoutMaskOfRow*>(there->begin() + places.masks);
  }

  void set(kj::ArrayPtr<const float> batch, kj::ArrayPtr<const int32_t> labels,
      kj::ArrayPtr<const uint64_t> draws);
  // From now on images are raw; there are no pixels any more.
  void takeRaw(const RawImages& images);
  // What to do in place of `importing` the pixels.
  Augment augment(const ImportPixels& importing);

  // Throws if there is no batch for this phase.
  void require(Phase phase) const;
  // Asks for what is missing on the device of the batch that was set last.
  void bring();
  // Behind the work that reads its images.
  void release();

  uint64_t memory_bytes() const;

  // ---- RawInput

  kj::Array<byte> allocate(size_t bytes) override;
  void keep(uint64_t first, kj::ArrayPtr<const byte> images) override;
  void setBatch(const RawBatch& batch) override;
  void awaitBatch() override;

private:
  // What a batch has beside its images, as it lies in memory.
  struct Places {
    size_t masks;
    size_t rows;
    size_t size;
  };
  // One of two that take turns.
  struct Turn {
    kj::Own<Memory> here;    // Places on the host
    kj::Own<Mark> isThere;   // `here` may be overwritten
    kj::Own<Memory> images;  // on the device: raw ones that are not kept
    kj::Own<Mark> areThere;  // they
    kj::Own<Mark> areFree;   // nobody reads them any more
  };
  // What does not change from batch to batch.
  struct Raw {
    Shape shape;
    bool reflects;
    kj::Maybe<float> grey;
    kj::Own<Memory> meanImage;
    bool hasMeanImage;
    kj::Own<Memory> means;
    kj::Own<Memory> factors;
    kj::Own<Memory> images;  // that are kept
    uint64_t kept;
  };

  static Places placesOf(uint images, uint masks);
  void fillMasks(kj::ArrayPtr<const uint64_t> draws, DropoutMaskOfRow* to) const;
  Turn& next() { return turns[1 - current]; }
  // Fills what all batches have; the next turn's place on the host.
  byte* begin(kj::ArrayPtr<const int32_t> labels, kj::ArrayPtr<const uint64_t> draws);
  kj::Own<Memory> uploaded(kj::ArrayPtr<const float> floats);
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
  bool isBrought = true;  // the batch that was set last is it
  bool isSet = false;
  bool isDrawn = false;
  kj::Maybe<Raw> raw;
};

}  // namespace nn::cuda
