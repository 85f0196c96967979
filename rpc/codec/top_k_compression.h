// rpc/codec/top_k_compression.h: deep gradient compression (Lin et al. 2018, arXiv 1712.01887).
#pragma once

#include "rpc/codec/compression.h"

namespace configs {
class Reader;
}

namespace rpc::codec {

// With u and v zero at first:
//
//   g ← g · min(1, clip / (√workers · ‖g‖));  u ← m·u + g;  v ← v + u
//   the k largest |v| are sent; there u ← 0, and what was sent is taken off v
//
// So without momentum or clipping what was sent and what is kept (v) are the sum of all gradients.
// Keeps 4 bytes per value, and 4 more if there is a momentum.
kj::Own<const Compression> readTopK(configs::Reader& reader);

// The share of values that push number `step` of a worker, from 0, does not send. Of the warm-up,
// equal parts send a quarter, a 16th, a 64th, … as long as that is more than in the end (3.3).
double sparsityAt(uint64_t step, uint64_t warmUp_steps, double sparsity);

}  // namespace rpc::codec
