#include "nn/conventions.h"

namespace nn {
namespace {

constexpr Conventions ROWS[] = {
    {
        .name = "mxnet",
        .doc =
            "MXNet of 2015 and 2016: batch norm with epsilon 1e-3, momentum 0.9, learned gamma and "
            "moving variances from 1 (2016); pooling rounds up, the learning rate is inside the "
            "momentum, decay is on all arrays (2015).",
        .batchNormEpsilon = 1e-3f,
        .batchNormMomentum = 0.9f,
        .movingMeanStart = 0,
        .movingVarianceStart = 1,
        .fixedGamma = false,
        .poolRounding = Pool::CEIL,
        .learningRateInsideMomentum = true,
        .decayOnAllArrays = true,
    },
};

}  // namespace

constinit const kj::ArrayPtr<const Conventions> CONVENTIONS = ROWS;

}  // namespace nn
