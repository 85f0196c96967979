// nn/cuda/presence.h: the GPUs of this machine that a program can run on, or why there are none.
#pragma once

#include <kj/array.h>
#include <kj/string.h>
#include <stdint.h>

namespace nn::cuda {

using kj::uint;

// A GPU of this machine.
struct Gpu {
  kj::String name;        // "NVIDIA H100 80GB HBM3"
  uint64_t memory_bytes;  // all of it
  uint major, minor;      // compute capability: 9 and 0
};

// The GPUs that a program can run on, or why there are none.
struct Presence {
  kj::Array<Gpu> gpus;  // `cuda:0`, `cuda:1`, …
  kj::String whyNone;   // "no GPU found (no driver)"; empty if there are any
};

// Returns the GPUs of this machine. Loads the libraries that computing needs (see libraries.h). The
// first call asks the driver, which takes a moment. The answer does not change while the process
// runs. Any thread.
const Presence& presence();

// The first call of presence() runs this on a thread that blocks all signals.
Presence findGpus();

// Returns why `cuda:<index>` cannot be used, in a few words. Null if it can.
kj::Maybe<kj::String> whyNot(const Presence& presence, uint index);

}  // namespace nn::cuda
