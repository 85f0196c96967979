// tools/bench/peaks.h: what this machine can do at most, measured: arithmetic and memory.
#pragma once

#include <kj/string.h>

namespace tools {

// Of some threads together, a second. Of several short rounds the best.
struct Peaks {
  double fp32_flops;  // fused multiply-adds on registers, each two operations
  double bf16_flops;  // the same of pairs of bfloat16; 0 if the processor has none
  double copy_bytes;  // a copy far larger than the caches: bytes read and bytes written
};

// With the instructions that the cpu program uses (nn::instructionSet()). Takes a second or so, and
// 64 MiB a thread while it runs.
Peaks measurePeaks(kj::uint threads, kj::StringPtr instructionSet);

}  // namespace tools
