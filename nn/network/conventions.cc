#include "nn/network/conventions.h"

namespace nn {
namespace {

constexpr Conventions ROWS[] = {
    {
        .name = "mxnet",
        .doc = "MXNet of 2015 and 2016. Batch norm has epsilon 1e-3, momentum 0.9, a learned "
               "gamma, and moving variances that start at 1 (2016). Pooling rounds up. The "
               "learning rate multiplies what enters the momentum (v ← momentum · v - rate · g; w "
               "← w + v). adam adds epsilon to the root of its second moment before the bias "
               "correction. rmsprop adds epsilon before it takes the root. Xavier's fan out is the "
               "weight's first dimension. Weight decay applies to all arrays (2015).",
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
        .doc = "MXNet 1.x. Batch norm has epsilon 1e-3, momentum 0.9, and gamma held at 1 (its "
               "`fix_gamma`). Pooling rounds down. The learning rate multiplies what enters the "
               "momentum (v ← momentum · v - rate · g; w ← w + v). adam adds epsilon to the root "
               "of its second moment before the bias correction. rmsprop adds epsilon before it "
               "takes the root. Xavier's fan out includes the kernel's area. Weight decay applies "
               "to weights and gammas only.",
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
        .doc = "PyTorch. Batch norm has epsilon 1e-5, momentum 0.9 (0.1 in PyTorch's notation) and "
               "a learned gamma. Pooling rounds down. The learning rate multiplies the momentum (v "
               "← momentum · v + g; w ← w - rate · v). adam adds epsilon to the root of its second "
               "moment after the bias correction. rmsprop adds epsilon after it has taken the "
               "root. Xavier's fan out includes the kernel's area. Weight decay applies to all "
               "arrays. One difference from PyTorch remains: with all conventions, the moving "
               "variance is an average of the biased variances of batches. PyTorch averages the "
               "unbiased variances, which are n / (n - 1) times as large.",
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
