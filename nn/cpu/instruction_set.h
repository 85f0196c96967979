// nn/cpu/instruction_set.h: which level of instructions the programs of this process use: "avx2" or
// "avx512". The bits of a program depend on it.
//
// They do not depend on what processors have beyond AVX-512. Only bf16 uses more, AVX512_BF16, and
// requirePrecision() refuses processors without it. oneDNN 2.6 uses AMX only for images whose
// channels lie together. Ours lie in blocks of 16.
#pragma once

#include <kj/string.h>

namespace nn {

// Returns the highest level that this processor has and DNNL_MAX_CPU_ISA allows. Unlike
// instructionSet(), leaves the choice open. Throws FAILED if there is not even AVX2.
kj::StringPtr offeredInstructionSet();

// Returns the level that programs use. From then on it is fixed for this process. Throws FAILED
// like offeredInstructionSet().
kj::StringPtr instructionSet();

// Makes all programs of this process use `level`. Call it before the first program is made. Throws
// FAILED if this machine does not have the level, or another one is fixed already.
void useInstructionSet(kj::StringPtr level);

}  // namespace nn
