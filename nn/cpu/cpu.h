// nn/cpu/cpu.h: the backend for CPUs with AVX2, AVX-512 or AMX.
#pragma once

#include <kj/array.h>
#include <kj/string.h>

#include "nn/cpu/instruction_set.h"
#include "nn/program.h"

namespace nn {

// Threads share the images of a batch. Each works through its share chunk by chunk. With AMX, if
// there are fewer groups of images than threads, the threads share the work on each group. For a
// given number of threads and instruction set, a program computes the same bits every time.
//
// A program runs on the thread that calls it, and on OpenMP threads if it has more than one.
// Lowering throws FAILED if the CPU lacks AVX2, or the instructions for the precision.
//
// A program uses instructionSet(). Tests limit it with DNNL_MAX_CPU_ISA ("AVX2", "AVX512_CORE", …)
// to reach the other code.
extern const Backend CPU;

// Returns the precision that AUTO stands for at a level of nn/cpu/instruction_set.h. The choice is
// fixed, so that all hosts of a job and every repetition agree. BF16 is for AMX only: "avx512" does
// not say whether there is AVX512_BF16. Where there is, BF16 is 1.3 to 1.5 times as fast as FP32
// for inception and residual networks, but slower for lenet.
Precision automaticPrecision(kj::StringPtr level);

// Throws FAILED, with a sentence for the user, if the CPU has no instructions for this precision.
void requirePrecision(Precision precision);

// Returns the names of the code that runs the convolutions of the graph, first in training, then in
// validation. oneDNN names its primitives ("jit:avx2"); "sgemm" are matrix products. Tests check
// that it is never oneDNN's reference code, which is a hundred times slower.
kj::Array<kj::String> convolutionImplementations(const Graph& graph, ProgramOptions options);

}  // namespace nn
