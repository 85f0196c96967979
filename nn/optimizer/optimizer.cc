#include "nn/optimizer/optimizer.h"

#include <kj/debug.h>

#include "nn/optimizer/optimizer_rows.h"
#include "nn/optimizer/update_values.h"

namespace nn {

size_t sizeOf(const SliceUpdate& update, uint stateArrays) {
  size_t size = update.current.size();
  KJ_REQUIRE(update.gradient.size() == size && update.next.size() == size &&
                 update.state.size() == size * stateArrays,
      size, update.gradient.size(), update.next.size(), update.state.size());
  return size;
}

void applyRule(const ValueRule& rule, SliceUpdate update) {
  updateValues(rule, {.size = sizeOf(update, rule.states),
                         .gradient = update.gradient.begin(),
                         .current = update.current.begin(),
                         .next = update.next.begin(),
                         .state = update.state.begin()});
}

void Optimizer::apply(SliceUpdate update) const {
  applyRule(KJ_ASSERT_NONNULL(valueRule(update)), update);
}

double readKeptShare(
    configs::Reader& reader, kj::StringPtr key, kj::StringPtr doc, double defaultValue) {
  double share = reader.real(key, doc, {.atLeast = 0, .below = 1}, defaultValue);
  if (float(share) == 1) {
    reader.error(key, kj::str("`", key, "` becomes 1 in float32, the number format of updates"),
        "write at most 0.9999999");
  }
  return share;
}

double readLearningRate(configs::Reader& reader, double defaultValue) {
  return reader.real("learning_rate", "Each step of the optimizer is multiplied by this number.",
      {.atLeast = 0}, defaultValue);
}

double readMomentum(configs::Reader& reader, double defaultValue) {
  return readKeptShare(reader, "momentum",
      "The momentum is a decaying sum of gradients. Each update keeps this share of it.",
      defaultValue);
}

double readWeightDecay(configs::Reader& reader) {
  return reader.real("weight_decay",
      "Pulls each parameter towards 0: this factor times the parameter is added to its gradient.",
      {.atLeast = 0}, 0);
}

double readDecoupledDecay(configs::Reader& reader, double defaultValue) {
  return reader.real("weight_decay",
      "Pulls each parameter towards 0, separately from its gradient: a step subtracts learning "
      "rate × decay × value.",
      {.atLeast = 0}, defaultValue);
}

namespace {

constexpr configs::Kind<OptimizerMaker> OPTIMIZERS[] = {
    {"sgd", "Stochastic gradient descent with momentum and weight decay.", readSgd},
    {"adam", "Adapts the step size of each parameter to its gradients (Kingma and Ba 2015).",
        readAdam},
    {"adamw",
        "Adam with weight decay separate from the gradient (Loshchilov and Hutter 2019), as in "
        "PyTorch.",
        readAdamw},
    {"rmsprop",
        "Divides each step by the moving root mean square of the gradient (Tieleman and Hinton "
        "2012).",
        readRmsprop},
    {"lars",
        "SGD with momentum and with a separate learning rate for each key. The rate depends on the "
        "Euclidean norms of the key's values and of its gradient (You, Gitman and Ginsburg 2017). "
        "Keys are not divided among servers.",
        readLars},
    {"muon",
        "SGD with momentum in which Newton-Schulz iterations make the step of each weight "
        "orthogonal (Jordan 2024). It updates weights only: biases, gammas and betas need a group "
        "with another optimizer. Keys are not divided among servers.",
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
