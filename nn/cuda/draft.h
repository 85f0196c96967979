// nn/cuda/draft.h: a plan in the making: tensors, the memory that they share, and lists of work.
#pragma once

#include <kj/one-of.h>
#include <kj/vector.h>

#include "nn/cuda/device.h"
#include "nn/lifetimes.h"
#include "nn/network/ops.h"

namespace nn::cuda {

// A convolution with its operands: see Device::run().
struct ConvolutionWork {
  kj::Own<ConvolutionPlan> convolution;
  const void* a;
  const void* b;
  void* c;
};

inline Plane planeOf(const Shape& shape) {
  return {shape.height, shape.width};
}
// With the zeros behind them.
inline uint padded(uint channels, uint pack) {
  return (channels + pack - 1) / pack * pack;
}

using Work = kj::OneOf<Kernel, ConvolutionWork>;

// A piece of the memory that a draft deals out.
struct Room {
  uint tenant = 0;
};

// A batch of images, N×H×W×channels, in a room: all of it, or some channels of each pixel.
struct Tensor {
  Room room;
  Element element = Element::FLOAT32;
  size_t shift = 0;  // values from the start of the room
  Plane plane;
  uint channels = 0;
  uint width = 0;  // see View
  uint stride = 0;

  // Whether pixels follow one another, padded: what convolutions take.
  bool isDense() const { return stride == width && width % packOf(element) == 0; }
};

// Lowering a graph is a function that takes rooms and asks for work. It runs twice over: for a
// first draft, which learns when each room is used for the first and last time, and for a second,
// which has places for them and keeps the work. So nobody has to say when a tensor dies.
//
// Moments are works, in the order in which they are asked for.
class Draft {
public:
  // The first: `images` a batch.
  explicit Draft(uint images): images(images) {}
  // The second, after `first` was filled, whose rooms lie in `memory`: at least first.pack() bytes.
  Draft(Draft&& first, byte* memory, Device& device);
  Draft(Draft&&) = default;
  KJ_DISALLOW_COPY(Draft);

  // Bytes that all rooms take.
  size_t pack();

  Room room(size_t bytes);
  // A dense tensor of its own.
  Tensor tensor(Element element, uint channels, Plane plane) {
    return tensor(element, channels, plane, packOf(element));
  }
  // The same, with channels padded to multiples of `pack`.
  Tensor tensor(Element element, uint channels, Plane plane, uint pack);
  // `channels` of `whole` from channel `first` on, with what is left of its padding behind the
  // last.
  static Tensor part(const Tensor& whole, uint first, uint channels);

  // The place of a room or tensor in the work that is asked for next.
  void* use(Room room);
  View use(const Tensor& tensor);
  template <typename T>
  T* use(Room room) {
    return static_cast<T*>(use(room));
  }

  // What follows goes to `list`.
  void begin(kj::Vector<Work>& list) { works = &list; }
  void run(Kernel kernel);
  void run(
      const ConvolutionProblem& shape, Direction direction, const void* a, const void* b, void* c);

  // Bytes of the largest workspace of a convolution.
  size_t workspace_bytes() const { return workspaceMax_bytes; }

  const uint images;

private:
  kj::Vector<Tenant> tenants;
  uint rooms = 0;
  uint moment = 0;
  byte* memory = nullptr;     // null: the first draft
  kj::Maybe<Device&> device;  // likewise
  kj::Vector<Work>* works = nullptr;
  size_t workspaceMax_bytes = 0;
};

}  // namespace nn::cuda
