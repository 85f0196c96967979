// nn/cuda/draft.h: collects the work of a program: tensors, the memory that they share, lists of
// work.
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
// Returns the number of channels including the zeros after them: a multiple of `pack`.
inline uint padded(uint channels, uint pack) {
  return (channels + pack - 1) / pack * pack;
}

using Work = kj::OneOf<Kernel, ConvolutionWork>;

// A piece of the memory of a draft.
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

  // Whether padded pixels follow one another without gaps, as convolutions need.
  bool isDense() const { return stride == width && width % packOf(element) == 0; }
};

// Lowering a graph is a function that takes rooms and asks for work. It runs twice. The first draft
// learns when each room is used for the first and last time. The second draft knows the address of
// each room, and keeps the work. So the function does not have to say when a tensor is no longer
// needed.
//
// A moment is a piece of work, in the order in which the function asks for it.
class Draft {
public:
  // Makes the first draft, for batches of `images`.
  explicit Draft(uint images): images(images) {}
  // Makes the second draft from `first`, which was filled. Its rooms are in `memory`, which has at
  // least first.pack() bytes.
  Draft(Draft&& first, byte* memory, Device& device);
  Draft(Draft&&) = default;
  KJ_DISALLOW_COPY(Draft);

  // Decides the places of rooms, and returns the bytes that all of them need.
  size_t pack();

  Room room(size_t bytes);
  // Returns a dense tensor in a new room.
  Tensor tensor(Element element, uint channels, Plane plane) {
    return tensor(element, channels, plane, packOf(element));
  }
  // The same, with channels padded to multiples of `pack`.
  Tensor tensor(Element element, uint channels, Plane plane, uint pack);
  // Returns `channels` channels of `whole` from channel `first` on. The part with the last channel
  // includes the padding after it.
  static Tensor part(const Tensor& whole, uint first, uint channels);

  // Returns the address of a room or tensor for the work that is asked for next. In the first
  // draft, all addresses are null.
  void* use(Room room);
  View use(const Tensor& tensor);
  template <typename T>
  T* use(Room room) {
    return static_cast<T*>(use(room));
  }

  // Appends later work to `list`.
  void begin(kj::Vector<Work>& list) { works = &list; }
  void run(Kernel kernel);
  void run(
      const ConvolutionProblem& shape, Direction direction, const void* a, const void* b, void* c);

  // Returns the bytes of the largest workspace that a convolution needs.
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
