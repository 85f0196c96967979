#include "nn/conventions.h"

namespace nn {
namespace {

constexpr Conventions ROWS[] = {
    {
        .name = "mxnet",
        .doc = "MXNet around 2016: batch norm with epsilon 1e-3, momentum 0.9, learned gamma and "
               "moving variances from 1; pooling rounds up; learning rate inside the momentum; "
               "decay on all arrays.",
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
