// nn/cpu/lowering.h: from a graph to a plan.
#pragma once

#include "nn/cpu/plan_builder.h"

namespace nn::cpu {

// How a network runs: what is stored of it for the whole batch are the outputs of convolutions,
// dense layers, pools and sums, unless nothing after their stage reads them. Batch norms (with
// their ReLU) and concats are *recomputed* from these, chunk by chunk, into scratch memory that
// stays in cache, by each stage that reads them. So a forward stage of a BN network is, for each
// chunk: normalise the outputs of the stage before into the concat → convolutions → their
// statistics; a backward stage: the same input again → for each convolution: gradient of its output
// out of that of its normalised output → gradients of weights and of the input → reductions for the
// batch norms below.
//
// Why this shape: convolutions take nine tenths of the time, and everything else waits for memory.
//
// The plan of validation has no backward, batch norms are folded into the convolutions before them,
// and a segment is one stage: all its values stay in scratch memory.
//
// Plans `graph` for batches of `images` shared by `lanes` threads, with values of `element`; the
// pixels that come in, logits and their gradient, and all that belongs to parameters are floats.
// Dense layers calculate with floats too: heads are small. Call it, like everything that
// makes oneDNN primitives, with omp_set_num_threads(1). The plan notes the time of its tasks in
// `profile`, if there is one.
kj::Own<ProgramPlan> planFor(const Graph& graph, Phase phase, uint images, uint lanes,
    const Kernels& kernels, Element element, FlatArrays arrays, dnnl_engine_t engine,
    kj::Maybe<Profile&> profile);

}  // namespace nn::cpu
