// nn/cuda/testing/host_device.h: a fake GPU whose work the host does, slowly. With it, a whole
// program runs without a GPU, except for the libraries.
#pragma once

#include <kj/vector.h>

#include <deque>

#include "nn/cuda/device.h"

namespace nn::cuda {

// The kinds of work that the device does as late as is legal, which is when something waits for it.
// It does all other work as early as is legal. This reveals code that reads data without waiting
// for them, or overwrites data without waiting for their readers.
struct Late {
  bool work = false;
  bool copies = false;  // uploads beside the work
};

// Does work immediately, except for `late` work. New memory holds NaNs, which reveals code that
// reads it before writing. All of its plans compute the same. The variable HOST_PLAN sets their
// name, so that tests see which ones were chosen. The variables HOST_BREAKS, HOST_HANGS and
// HOST_HANGS_AT_START each name a file. If the file does not exist, the device fails at its 40th
// replay, hangs at its 40th replay, or hangs when it is asked for memory. Before that, it makes the
// file, so that the next attempt succeeds. For tests.
class HostDevice final: public Device {
public:
  // No piece of memory may be larger than `bytesMax`.
  explicit HostDevice(Late late = {}, uint64_t bytesMax = kj::maxValue)
      : bytesMax(bytesMax), work{late.work}, copies{late.copies} {}

  kj::Own<Memory> allocate(size_t bytes) override;
  kj::Own<Memory> allocateOnHost(size_t bytes) override;
  kj::Own<Memory> pin(kj::ArrayPtr<byte> memory) override;
  kj::Own<ConvolutionPlan> plan(const ConvolutionProblem& shape, Direction direction) override;
  void upload(void* to, kj::ArrayPtr<const byte> from) override;
  void upload(void* to, kj::ArrayPtr<const byte> from, Mark& free, Mark& done) override;
  void follow(Mark& mark) override;
  void download(kj::ArrayPtr<byte> to, const void* from) override;
  void copyFrom(void* to, Device& other, const void* from, size_t bytes) override;
  void run(const Kernel& kernel) override;
  void run(ConvolutionPlan& plan, const void* a, const void* b, void* c, void* workspace) override;
  kj::Own<Recording> record(kj::FunctionParam<void()> ask) override;
  void replay(Recording& recording) override;
  kj::Own<Mark> newMark() override;
  void set(Mark& mark) override;
  bool isPast(Mark& mark) override;
  void wait(Mark& mark) override;
  void finish() override;

  // Returns what the device was asked for since the last call: names of kernels, `convolution
  // forward`, ….
  kj::Array<kj::StringPtr> takeWork();

private:
  class Recorded;
  class HostMark;
  struct Stream;
  // The point at which a mark was set for the `count`th time. Null mark: it was never set.
  struct MarkedPoint {
    HostMark* mark = nullptr;
    uint64_t count = 0;

    bool isPast() const;
  };
  // Work that is done after `behind`, and then passes `reaches`.
  struct Step {
    kj::Function<void()> what;
    MarkedPoint behind;
    MarkedPoint reaches;
  };
  struct Stream {
    bool isLate;
    std::deque<Step> steps;
  };

  // Does the work, or appends it to the recording.
  void ask(kj::Function<void()> work);
  void ask(Stream& stream, Step step);
  // Does all work that is ready and not late.
  void advance();
  void doNext(Stream& stream);
  void reach(MarkedPoint point);
  static MarkedPoint pointOf(Mark& mark);
  // Sets the mark at the work that is asked for next.
  MarkedPoint point(Mark& mark, Stream& stream);

  const uint64_t bytesMax;
  Stream work, copies;
  kj::Maybe<Recorded&> recording;
  kj::Vector<kj::StringPtr> done;
  uint replays = 0;
};

}  // namespace nn::cuda
