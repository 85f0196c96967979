// rpc/codec/top_k_compression.h: deep gradient compression (Lin et al. 2018, arXiv 1712.01887).
#pragma once

#include "rpc/codec/compression.h"

namespace configs {
class Reader;
}

namespace rpc::codec {

// Reads the keys of this compression. u and v are zero initially. Each step:
//
//   g ← g · min(1, clip / (√workers · ‖g‖));  u ← m·u + g;  v ← v + u
//   the k largest |v| are sent; there u ← 0, and v ← v - what was sent
//
// Therefore, without momentum and clipping, the sum of all gradients equals the sent values plus
// the kept ones (v). Keeps 4 bytes per value, and 4 more if there is a momentum.
kj::Own<const Compression> readTopK(configs::Reader& reader);

// Returns the share of values that push number `step` of a worker (from 0) does not send. The
// warm-up has equal parts, which send a quarter, a 16th, a 64th, …, as long as that is more than
// the share after the warm-up (section 3.3 of the paper).
double sparsityAt(uint64_t step, uint64_t warmUp_steps, double sparsity);

}  // namespace rpc::codec
