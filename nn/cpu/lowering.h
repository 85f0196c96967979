// nn/cpu/lowering.h: lowers a graph to a plan.
#pragma once

#include "nn/cpu/plan_builder.h"

namespace nn::cpu {

// How a network runs. The program stores the outputs of convolutions, dense layers, pools and sums
// for the whole batch, unless no later stage reads them. Each stage that reads a batch norm (with
// its ReLU) or a concat *recomputes* it from these, chunk by chunk, into scratch memory that stays
// in cache. For each chunk,
//   a forward stage of a network with batch norms normalises the outputs of the stage before into
//     the concat, runs the convolutions, and takes their statistics;
//   a backward stage recomputes the same input. For each convolution it computes the gradient of
//     the output from that of the normalised output, then the gradients of weights and input, and
//     then the reductions for the batch norms below.
//
// The reason: convolutions take nine tenths of the time, and everything else waits for memory.
//
// The plan of validation has no backward stages. Batch norms are folded into the convolutions
// before them. A segment is one stage, and all its values stay in scratch memory.
//
// Plans `graph` for batches of `images` shared by `lanes` threads, with values of `element`. Input
// pixels, logits and their gradient, and everything that belongs to parameters are floats. Dense
// layers also calculate with floats, because they are small. Call this function, like everything
// that makes oneDNN primitives, with omp_set_num_threads(1). The plan notes the time of its tasks
// in `profile`, if there is one.
kj::Own<ProgramPlan> planFor(const Graph& graph, Phase phase, uint images, uint lanes,
    const Kernels& kernels, Element element, FlatArrays arrays, dnnl_engine_t engine,
    kj::Maybe<Profile&> profile);

}  // namespace nn::cpu
