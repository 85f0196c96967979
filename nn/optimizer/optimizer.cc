#include "nn/optimizer/optimizer.h"

#include <kj/debug.h>

#include "nn/optimizer/optimizer_rows.h"

namespace nn {

size_t sizeOf(const Update& update, uint stateArrays) {
  size_t size = update.current.size();
  KJ_REQUIRE(update.gradient.size() == size && update.next.size() == size &&
                 update.state.size() == size * stateArrays,
      size, update.gradient.size(), update.next.size(), update.state.size());
  return size;
}

double readKeptShare(
    configs::Reader& reader, kj::StringPtr key, kj::StringPtr doc, double defaultValue) {
  double share = reader.real(key, doc, {.atLeast = 0, .below = 1}, defaultValue);
  if (float(share) == 1) {
    reader.error(key, kj::str("`", key, "` is 1 in float32, in which updates are calculated"),
        "take at most 0.9999999");
  }
  return share;
}

double readLearningRate(configs::Reader& reader, double defaultValue) {
  return reader.real("learning_rate", "Size of a step.", {.atLeast = 0}, defaultValue);
}

double readMomentum(configs::Reader& reader, double defaultValue) {
  return readKeptShare(
      reader, "momentum", "Share of the last step that goes into the next.", defaultValue);
}

double readWeightDecay(configs::Reader& reader) {
  return reader.real("weight_decay",
      "Pull of each parameter towards 0: times its value, added to its gradient.", {.atLeast = 0},
      0);
}

double readDecoupledDecay(configs::Reader& reader, double defaultValue) {
  return reader.real("weight_decay",
      "Pull of each parameter towards 0 beside its gradient: a step takes learning rate × decay × "
      "value away.",
      {.atLeast = 0}, defaultValue);
}

namespace {

constexpr configs::Kind<OptimizerMaker> OPTIMIZERS[] = {
    {"sgd", "Stochastic gradient descent with momentum and weight decay.", readSgd},
    {"adam", "Steps of a size of their own for each parameter (Kingma and Ba 2015).", readAdam},
    {"adamw",
        "Adam with the decay beside the gradient (Loshchilov and Hutter 2019), as PyTorch has it.",
        readAdamw},
    {"rmsprop",
        "Steps divided by the moving root mean square of the gradient (Tieleman and Hinton 2012).",
        readRmsprop},
    {"lars",
        "Momentum with a rate for each key, after the lengths of its values and of its gradient "
        "(You, Gitman and Ginsburg 2017). Needs whole keys: they are not cut over servers.",
        readLars},
    {"muon",
        "Momentum, and each weight's step made orthogonal by Newton-Schulz steps (Jordan 2024). "
        "Needs whole keys, and is for weights alone: biases, gammas and betas need a group with "
        "another rule.",
        readMuon},
};

}  // namespace

kj::Own<const Optimizer> readOptimizer(
    configs::Reader& reader, kj::StringPtr key, const Conventions& conventions) {
  return reader.kind<OptimizerMaker>(
      key, "The rule that turns gradients into new parameters.", OPTIMIZERS, "sgd")(conventions);
}

kj::Maybe<kj::Own<const Optimizer>> maybeReadOptimizer(
    configs::Reader& reader, kj::StringPtr key, kj::StringPtr doc, const Conventions& conventions) {
  KJ_IF_MAYBE(make, reader.maybeKind<OptimizerMaker>(key, doc, OPTIMIZERS)) {
    return (*make)(conventions);
  }
  return nullptr;
}

}  // namespace nn
