// tools/bench/gpu_peers.h: the comparisons with PyTorch on a GPU.
#pragma once

#include "tools/bench/peer_rows.h"

namespace tools {

// A network on a GPU, without its data set. Each network is compared with three ways of PyTorch: by
// default (`plain`, both in tf32), with channels_last and autocast (`autocast`, both in bf16), and
// the latter with torch.compile (`compiled`).
struct GpuNetwork {
  const char* name;
  const char* file;
  const char* network;  // in tests/peers/networks.py
  uint batch;
  uint colours = 3;
  uint side = 28;
  uint classes = 10;
};

extern const kj::ArrayPtr<const GpuNetwork> GPU_NETWORKS;

// Returns the comparisons that a word names: `lenet` names three, `lenet-compiled` one. Empty if
// there is no such network. `python` runs the script. A measurement takes about `seconds`. Does not
// check our program first, because the tests of ops and `bench losses` do that.
kj::Vector<kj::Own<Contest>> gpuContests(kj::StringPtr word, kj::StringPtr python, uint seconds);

// Returns why this Python's PyTorch finds no GPU, or null if it finds one. Throws if the current
// folder is not the project's root.
kj::Maybe<kj::String> noGpuPeer(kj::StringPtr python);

}  // namespace tools
