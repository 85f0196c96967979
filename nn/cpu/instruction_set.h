// nn/cpu/instruction_set.h: which level of instructions the programs of this process use: "avx2",
// "avx512" or "avx512_amx". The bits of a program depend on it.
//
// "avx512" computes fp32 and, if the processor has AVX512_BF16, bf16. "avx512_amx" computes bf16
// with AMX, and fp32 as "avx512" does. requirePrecision() refuses bf16 on processors without
// AVX512_BF16. Other levels never use AMX: oneDNN 2.6 only does so for images whose channels are
// adjacent, and ours are in blocks of 16.
#pragma once

#include <kj/string.h>

namespace nn {

// The levels in ascending order. Each adds instructions to the one before.
constexpr kj::StringPtr AVX2 = "avx2"_kj;
constexpr kj::StringPtr AVX512 = "avx512"_kj;
constexpr kj::StringPtr AMX = "avx512_amx"_kj;

// Returns the highest level that this processor has and DNNL_MAX_CPU_ISA allows. Unlike
// instructionSet(), leaves the choice open. Throws FAILED if there is not even AVX2.
kj::StringPtr offeredInstructionSet();

// Returns the level that programs use. From then on it is fixed for this process. Throws FAILED
// like offeredInstructionSet().
kj::StringPtr instructionSet();

// Makes all programs of this process use `level`. Call it before the first program is made. A
// processor with "avx512" emulates "avx512_amx" with the same bits. Throws FAILED if this machine
// does not have the level, or another one is fixed already.
void useInstructionSet(kj::StringPtr level);

// Whether a host that offers `offered` can compute with `level`, itself or by emulation.
bool canCompute(kj::StringPtr offered, kj::StringPtr level);
// The lower of two levels.
kj::StringPtr lowerLevel(kj::StringPtr a, kj::StringPtr b);

// Whether this processor has AMX for bfloat16, the kernel lets this process use it, and
// DNNL_MAX_CPU_ISA allows it. Otherwise "avx512_amx" is emulated.
bool hasAmx();

}  // namespace nn
