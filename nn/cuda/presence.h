// nn/cuda/presence.h: which GPUs a program can be lowered for here, or why there is none.
#pragma once

#include <kj/array.h>
#include <kj/string.h>
#include <stdint.h>

namespace nn::cuda {

using kj::uint;

struct Gpu {
  kj::String name;        // "NVIDIA H100 80GB HBM3"
  uint64_t memory_bytes;  // all of it
  uint major, minor;      // compute capability: 9 and 0
};

struct Presence {
  kj::Array<Gpu> gpus;  // `cuda:0`, `cuda:1`, …
  kj::String whyNone;   // "no GPU found (no driver)"; empty if there are any
};

// What is there, with the libraries that computing takes: they are loaded then (see libraries.h).
// The first call asks the driver, which takes a moment; the answer holds as long as the process.
// Any thread.
const Presence& presence();

// Why `cuda:<index>` cannot be computed on, in a few words; null if it can.
kj::Maybe<kj::String> whyNot(const Presence& presence, uint index);

}  // namespace nn::cuda
