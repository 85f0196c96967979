// nn/optimizer/optimizer_rows.h: the readers in the table of optimizer.cc, one file per family.
#pragma once

#include <kj/function.h>

#include "nn/optimizer/optimizer.h"

namespace nn {

// The result of a row's reader. readOptimizer() calls it with the conventions, which the reader
// does not have.
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

// Returns the length of an update's arrays. Throws if their lengths do not fit together.
size_t sizeOf(const SliceUpdate& update, uint stateArrays);

// Updates each value of a slice by `rule`. Throws if the lengths do not fit together.
void applyRule(const ValueRule& rule, SliceUpdate update);

// Reads the share of a moving value that a step keeps. It must be at least 0, and below 1 even
// after rounding to float32.
double readKeptShare(
    configs::Reader& reader, kj::StringPtr key, kj::StringPtr doc, double defaultValue);

// Read keys that several optimizers have.
double readLearningRate(configs::Reader& reader, double defaultValue);
double readMomentum(configs::Reader& reader, double defaultValue);
// Decay that is added to the gradient.
double readWeightDecay(configs::Reader& reader);
// Decay that is decoupled from the gradient (Loshchilov and Hutter 2019).
double readDecoupledDecay(configs::Reader& reader, double defaultValue);

}  // namespace nn
