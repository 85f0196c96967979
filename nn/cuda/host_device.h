// nn/cuda/host_device.h: a device that is none: the host does its work, slowly. So all of a program
// but the libraries' own part runs where no GPU is.
#pragma once

#include <kj/vector.h>

#include "nn/cuda/device.h"

namespace nn::cuda {

// Work is done when it is asked for. What `Device` says holds anything holds NaNs, so that it shows
// who reads it. For tests.
class HostDevice final: public Device {
public:
  kj::Own<Memory> allocate(size_t bytes) override;
  kj::Own<Memory> allocateOnHost(size_t bytes) override;
  kj::Own<Memory> pin(kj::ArrayPtr<byte> memory) override;
  kj::Own<Convolution> plan(const ConvolutionShape& shape, Direction direction) override;
  void upload(void* to, kj::ArrayPtr<const byte> from) override;
  void follow(Mark& mark) override {}
  void download(kj::ArrayPtr<byte> to, const void* from) override;
  void copyFrom(void* to, Device& other, const void* from, size_t bytes) override;
  void run(const Kernel& kernel) override;
  void run(
      Convolution& convolution, const void* a, const void* b, void* c, void* workspace) override;
  kj::Own<Recording> record(kj::FunctionParam<void()> ask) override;
  void replay(Recording& recording) override;
  kj::Own<Mark> newMark() override;
  void set(Mark& mark) override;
  bool isPast(Mark& mark) override;
  void wait(Mark& mark) override;
  void finish() override;

  // What it was asked for since the last call: the names of kernels, `convolution forward`, ….
  kj::Array<kj::StringPtr> takeWork();

private:
  class Recorded;

  // Does it, or appends it to what is being recorded.
  void ask(kj::Function<void()> work);

  kj::Maybe<Recorded&> recording;
  kj::Vector<kj::StringPtr> done;
};

}  // namespace nn::cuda
