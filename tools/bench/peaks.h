// tools/bench/peaks.h: measures the limits of this machine: arithmetic and memory.
#pragma once

#include <kj/string.h>

namespace tools {

// Rates of several threads together, per second. The best of several short rounds.
struct Peaks {
  double fp32_flops;  // fused multiply-adds in registers, each two operations
  double bf16_flops;  // the same for pairs of bfloat16; 0 if the processor has no such instruction
  double amx_flops;   // products of tiles of bfloat16; 0 without AMX
  double copy_bytes;  // a copy far larger than the caches: bytes read and bytes written
};

// Measures with the instructions that the CPU program uses (nn::instructionSet()). Takes about a
// second, and 64 MiB per thread meanwhile.
Peaks measurePeaks(kj::uint threads, kj::StringPtr instructionSet);

}  // namespace tools
