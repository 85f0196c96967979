#include "nn/network/conventions.h"

namespace nn {
namespace {

constexpr Conventions ROWS[] = {
    {
        .name = "mxnet",
        .doc =
            "MXNet of 2015 and 2016: batch norm with epsilon 1e-3, momentum 0.9, learned gamma and "
            "moving variances from 1 (2016); pooling rounds up, the learning rate is inside the "
            "momentum, epsilon is beside adam's uncorrected root and below rmsprop's, xavier's "
            "fan out is a weight's first dimension, decay is on all arrays (2015).",
        .batchNormEpsilon = 1e-3f,
        .batchNormMomentum = 0.9f,
        .movingMeanStart = 0,
        .movingVarianceStart = 1,
        .fixedGamma = false,
        .poolRounding = Pool::CEIL,
        .learningRateInsideMomentum = true,
        .epsilonComesLast = false,
        .fanOutHasKernelArea = false,
        .decayOnAllArrays = true,
    },
    {
        .name = "mxnet_1x",
        .doc = "MXNet 1.x: batch norm with epsilon 1e-3, momentum 0.9 and gamma held at 1 (its "
               "`fix_gamma`); pooling rounds down, the learning rate is inside the momentum, "
               "epsilon is beside adam's uncorrected root and below rmsprop's, xavier's fan out "
               "counts the kernel's area, decay is on weights and gammas only.",
        .batchNormEpsilon = 1e-3f,
        .batchNormMomentum = 0.9f,
        .movingMeanStart = 0,
        .movingVarianceStart = 1,
        .fixedGamma = true,
        .poolRounding = Pool::FLOOR,
        .learningRateInsideMomentum = true,
        .epsilonComesLast = false,
        .fanOutHasKernelArea = true,
        .decayOnAllArrays = false,
    },
    {
        .name = "torch",
        .doc =
            "PyTorch: batch norm with epsilon 1e-5, momentum 0.9 (PyTorch's 0.1) and learned "
            "gamma; pooling rounds down, the learning rate is outside of the momentum, epsilon is "
            "beside adam's corrected root and outside of rmsprop's, xavier's "
            "fan out counts the kernel's area, decay is on all arrays. The moving variance is of "
            "the biased one, as everywhere here; PyTorch's "
            "is of the unbiased one, n / (n - 1) times as large.",
        .batchNormEpsilon = 1e-5f,
        .batchNormMomentum = 0.9f,
        .movingMeanStart = 0,
        .movingVarianceStart = 1,
        .fixedGamma = false,
        .poolRounding = Pool::FLOOR,
        .learningRateInsideMomentum = false,
        .epsilonComesLast = true,
        .fanOutHasKernelArea = true,
        .decayOnAllArrays = true,
    },
};

}  // namespace

constinit const kj::ArrayPtr<const Conventions> CONVENTIONS = ROWS;

}  // namespace nn
