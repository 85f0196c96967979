// nn/cpu/cpu.h: the backend for CPUs with AVX2 or AVX-512, on oneDNN.
#pragma once

#include <kj/array.h>
#include <kj/string.h>

#include "nn/program.h"

namespace nn {

// Threads share the images of a batch; each works through its share chunk by chunk. For a given
// number of threads and instruction set a program gives the same bits every time.
//
// A program runs on the thread that calls it and, with more than one, on OpenMP threads beside it.
// Lowering throws FAILED if the CPU has no AVX2, or not what the precision takes.
//
// Which instructions are used follows oneDNN's choice, and so DNNL_MAX_CPU_ISA ("AVX2",
// "AVX512_CORE", …), which a test sets to see the other paths.
extern const Backend CPU;

// Throws FAILED, with a sentence for the user, if a program of this precision would not run on the
// CPU's own instructions.
void requirePrecision(Precision precision);

// The instruction-set level that a program runs with here, "avx512" or "avx2": the bits depend on
// it. Throws as lowering does.
kj::StringPtr instructionSet();

// The names of the code that runs the graph's convolutions, those of training, then those of
// validation, to be checked: oneDNN's for its
// primitives ("jit:avx2"), "sgemm" for matrix products. Never its reference code, which is a
// hundred times too slow.
kj::Array<kj::String> convolutionImplementations(const Graph& graph, ProgramOptions options);

}  // namespace nn
