// nn/optimizer/optimizer_rows.h: what optimizer.cc's table is made of: a reader for each rule, a
// file a family.
#pragma once

#include <kj/function.h>

#include "nn/optimizer/optimizer.h"

namespace nn {

// What a row reads; the conventions are known to readOptimizer() alone.
using OptimizerMaker = kj::Function<kj::Own<const Optimizer>(const Conventions&)>;

// optimizer_sgd.cc
OptimizerMaker readSgd(configs::Reader& reader);
OptimizerMaker readLars(configs::Reader& reader);
// optimizer_adam.cc
OptimizerMaker readAdam(configs::Reader& reader);
OptimizerMaker readAdamw(configs::Reader& reader);
// optimizer_rmsprop.cc
OptimizerMaker readRmsprop(configs::Reader& reader);
// optimizer_muon.cc
OptimizerMaker readMuon(configs::Reader& reader);

// The length of an update's arrays. Throws if they do not fit together.
size_t sizeOf(const SliceUpdate& update, uint stateArrays);

// A share of a moving value that a step keeps: at least 0, and below 1 as a float too.
double readKeptShare(
    configs::Reader& reader, kj::StringPtr key, kj::StringPtr doc, double defaultValue);

// Keys that several rules have.
double readLearningRate(configs::Reader& reader, double defaultValue);
double readMomentum(configs::Reader& reader, double defaultValue);
// Decay that is added to the gradient.
double readWeightDecay(configs::Reader& reader);
// Decay beside the gradient (Loshchilov and Hutter 2019).
double readDecoupledDecay(configs::Reader& reader, double defaultValue);

}  // namespace nn
