// nn/loops/each_instruction_set.h: plain loops in the instruction set of the machine at hand.
#pragma once

// Before a function: the compiler makes it for the oldest machines, AVX2 and AVX-512, and picks one
// when the program starts. The bits are the same: without contraction each operation is rounded.
#define EACH_INSTRUCTION_SET __attribute__((target_clones("default", "avx2", "avx512f")))
