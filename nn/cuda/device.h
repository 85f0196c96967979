// nn/cuda/device.h: the interface of a GPU: memory, work on one stream, and copies beside it.
#pragma once

#include <kj/array.h>
#include <kj/function.h>
#include <kj/memory.h>
#include <kj/string.h>

#include "nn/cuda/kernels.h"

namespace nn::cuda {

using kj::byte;
using kj::uint;

// Memory that is freed with this object.
class Memory {
public:
  virtual ~Memory() noexcept(false) = default;
  virtual byte* begin() = 0;
};

// The layout of a batch that a convolution reads or writes: a View without its address.
struct BatchLayout {
  uint channels;  // including the zeros after them
  uint height;
  uint width;
  uint stride;  // values from pixel to pixel
};

// The description of a convolution, from which it is planned. x, y and the filters
// (O'×kernelHeight×kernelWidth×I') hold values of `element`. Only the y of FORWARD holds values of
// `output`. Sums are float32. A dense layer is a convolution whose kernel has the size of its
// input.
struct ConvolutionProblem {
  Element element;
  Element output;
  bool tensorFloats;  // FLOAT32: may round factors to TF32
  uint images;
  BatchLayout x, y;
  uint kernelHeight, kernelWidth;
  uint stride, pad;
  bool deterministic;  // only algorithms that give the same bits every time
};

// Which of the arrays of a convolution is computed from the other two: see Device::run().
enum class Direction { FORWARD, BACKWARD_DATA, BACKWARD_FILTERS };

// How the library of a device will run a convolution.
class ConvolutionPlan {
public:
  virtual ~ConvolutionPlan() noexcept(false) = default;
  virtual size_t workspace_bytes() const = 0;
};

// Work that was recorded once, and can be replayed any number of times.
class Recording {
public:
  virtual ~Recording() noexcept(false) = default;
};

// A place in the order of a device's work. The device makes the mark and sets it. Other work may
// follow it. A mark that was never set counts as past.
class Mark {
public:
  virtual ~Mark() noexcept(false) = default;
};

// One GPU. It does work in the order of the calls, asynchronously. wait() and finish() wait for it.
// If work fails, any later call throws FAILED, with the message of the library. Called by one
// thread at a time.
class Device {
public:
  virtual ~Device() noexcept(false) = default;

  virtual kj::Own<Memory> allocate(size_t bytes) = 0;  // on the device, with undefined content
  // Zeroed memory on the host, which the device can copy from and to without the help of the host.
  virtual kj::Own<Memory> allocateOnHost(size_t bytes) = 0;
  // Makes `memory` of the host, which exists already, usable in the same way. `memory` must stay
  // valid until the result is dropped.
  virtual kj::Own<Memory> pin(kj::ArrayPtr<byte> memory) = 0;

  // Returns the fastest way to compute this convolution that the device finds or remembers. It may
  // remember that way from run to run.
  virtual kj::Own<ConvolutionPlan> plan(const ConvolutionProblem& shape, Direction direction) = 0;

  // ---- work

  // `from` must stay unchanged until the copy is done, in both forms of upload().
  virtual void upload(void* to, kj::ArrayPtr<const byte> from) = 0;
  // Uploads beside the work: after the mark `free`, which was set before, and after earlier uploads
  // of this kind. Then sets `done`. Work that reads the upload must follow `done`.
  virtual void upload(void* to, kj::ArrayPtr<const byte> from, Mark& free, Mark& done) = 0;
  // Makes all later work wait for the last setting of `mark`.
  virtual void follow(Mark& mark) = 0;
  virtual void download(kj::ArrayPtr<byte> to, const void* from) = 0;
  // Copies from another device, or from this one.
  virtual void copyFrom(void* to, Device& other, const void* from, size_t bytes) = 0;
  virtual void run(const Kernel& kernel) = 0;
  // FORWARD: c = convolution(a = x, b = filters); BACKWARD_DATA: c = dx of (a = dy, b = filters);
  // BACKWARD_FILTERS: c = gradient of the filters of (a = x, b = dy).
  virtual void run(
      ConvolutionPlan& plan, const void* a, const void* b, void* c, void* workspace) = 0;

  // Records the work that `ask` asks for. The device may also do that work, and call `ask` twice.
  virtual kj::Own<Recording> record(kj::FunctionParam<void()> ask) = 0;
  virtual void replay(Recording& recording) = 0;

  // ---- waiting

  virtual kj::Own<Mark> newMark() = 0;
  virtual void set(Mark& mark) = 0;  // after the work so far
  virtual bool isPast(Mark& mark) = 0;
  virtual void wait(Mark& mark) = 0;
  virtual void finish() = 0;
};

}  // namespace nn::cuda
