// configs/language/each_instruction_set.h: plain loops in the instruction set of the machine at
// hand.
#pragma once

// To be written before a function. The compiler then makes three versions of the function: for the
// oldest machines, for AVX2 and for AVX-512. The program picks one when it starts. All compute the
// same bits, because without contraction each operation is rounded.
#define EACH_INSTRUCTION_SET __attribute__((target_clones("default", "avx2", "avx512f")))
