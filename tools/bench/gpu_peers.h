// tools/bench/gpu_peers.h: what is compared with PyTorch on a GPU.
#pragma once

#include "tools/bench/peer_rows.h"

namespace tools {

// A network on a GPU, without its data set. Each is compared thrice with what PyTorch does: as it
// comes (`plain`, both in tf32), with channels_last and autocast (`autocast`, both in bf16), and
// that through torch.compile (`compiled`).
struct GpuNetwork {
  const char* name;
  const char* file;
  const char* network;  // of tests/peers/networks.py
  uint batch;
  uint colours = 3;
  uint side = 28;
  uint classes = 10;
};

extern const kj::ArrayPtr<const GpuNetwork> GPU_NETWORKS;

// The comparisons that a word names: `lenet` three, `lenet-compiled` one. None: no such network.
// `python` runs the script, measurements take some `seconds`. Ours is not checked before: that is
// for the tests of ops and `bench losses`.
kj::Vector<kj::Own<Contest>> gpuContests(kj::StringPtr word, kj::StringPtr python, uint seconds);

// Null if this Python's PyTorch finds a GPU; else why not. Throws if the current folder is not the
// project's root.
kj::Maybe<kj::String> noGpuPeer(kj::StringPtr python);

}  // namespace tools
