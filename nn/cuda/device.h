// nn/cuda/device.h: what a program asks of a GPU: memory, work on one stream, copies beside it.
#pragma once

#include <kj/array.h>
#include <kj/function.h>
#include <kj/memory.h>
#include <kj/string.h>

#include "nn/cuda/kernels.h"

namespace nn::cuda {

using kj::byte;
using kj::uint;

// Memory that goes with its owner.
class Memory {
public:
  virtual ~Memory() noexcept(false) = default;
  virtual byte* begin() = 0;
};

// A batch of a convolution's input or output, as Views without a place: `width` channels.
struct BatchLayout {
  uint channels;  // with the zeros behind them
  uint height;
  uint width;
  uint stride;  // values from pixel to pixel
};

// What a convolution is made for. x, y and the filters (O'×kernelHeight×kernelWidth×I') hold
// values of `element`, but the y of FORWARD those of `output`; sums are float32. A dense layer is
// the convolution whose kernel is its input's plane.
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

enum class Direction { FORWARD, BACKWARD_DATA, BACKWARD_FILTERS };

// A convolution as the device's library will run it.
class ConvolutionPlan {
public:
  virtual ~ConvolutionPlan() noexcept(false) = default;
  virtual size_t workspace_bytes() const = 0;
};

// Work that was recorded once, to be done as often as wanted.
class Recording {
public:
  virtual ~Recording() noexcept(false) = default;
};

// A place in the order of a device's work: the device makes the mark and sets it, others may follow
// it. One that was never set is past.
class Mark {
public:
  virtual ~Mark() noexcept(false) = default;
};

// One GPU. Work is done in the order in which it is asked for, some time after the call; wait()
// and finish() wait for it. What fails on the way is thrown by any later call (FAILED, with the
// library's word for it). Called by one thread at a time.
class Device {
public:
  virtual ~Device() noexcept(false) = default;

  virtual kj::Own<Memory> allocate(size_t bytes) = 0;  // on the device, holding anything
  // On the host, where copies to and from the device wait for nobody; zeros.
  virtual kj::Own<Memory> allocateOnHost(size_t bytes) = 0;
  // The same of memory that is there already, and must stay until what is returned is dropped.
  virtual kj::Own<Memory> pin(kj::ArrayPtr<byte> memory) = 0;

  // A plan of the fastest way the device has found: which that is, it may keep from run to run.
  virtual kj::Own<ConvolutionPlan> plan(const ConvolutionProblem& shape, Direction direction) = 0;

  // ---- work

  virtual void upload(void* to, kj::ArrayPtr<const byte> from) = 0;
  // The same beside the work: behind `free`, set before, and what was uploaded so before; then
  // `done` is set there. Work that reads it is to follow `done`.
  virtual void upload(void* to, kj::ArrayPtr<const byte> from, Mark& free, Mark& done) = 0;
  // Work that is asked for from now on is done behind `mark` as it was set last.
  virtual void follow(Mark& mark) = 0;
  virtual void download(kj::ArrayPtr<byte> to, const void* from) = 0;
  // From another device, or this one.
  virtual void copyFrom(void* to, Device& other, const void* from, size_t bytes) = 0;
  virtual void run(const Kernel& kernel) = 0;
  // FORWARD: c = convolution(a = x, b = filters); BACKWARD_DATA: c = dx of (a = dy, b = filters);
  // BACKWARD_FILTERS: c = gradient of the filters of (a = x, b = dy).
  virtual void run(
      ConvolutionPlan& plan, const void* a, const void* b, void* c, void* workspace) = 0;

  // Records the work that `ask` asks for. It may be done as well, and `ask` be called twice.
  virtual kj::Own<Recording> record(kj::FunctionParam<void()> ask) = 0;
  virtual void replay(Recording& recording) = 0;

  // ---- waiting

  virtual kj::Own<Mark> newMark() = 0;
  virtual void set(Mark& mark) = 0;  // behind the work so far
  virtual bool isPast(Mark& mark) = 0;
  virtual void wait(Mark& mark) = 0;
  virtual void finish() = 0;
};

}  // namespace nn::cuda
