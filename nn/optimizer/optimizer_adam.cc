// Steps from the moments of the gradient: adam and adamw.
#include <cmath>

#include "nn/loops/power.h"
#include "nn/optimizer/optimizer_rows.h"

namespace nn {
namespace {

struct Settings {
  double learningRate;
  double beta1;
  double beta2;
  double epsilon;
  double weightDecay;
};

// Both have one formula. With t the number of the update, counted from 1:
//   rate_t = rate · sqrt(1 - beta2^t) / (1 - beta1^t)
class Moments: public Optimizer {
public:
  explicit Moments(Settings settings): settings(settings) {}

  uint stateArrays() const override { return 2; }
  double learningRate() const override { return settings.learningRate; }
  double weightDecay() const override { return settings.weightDecay; }

protected:
  // sqrt(1 - beta2^t)
  double rootCorrection(uint64_t number) const {
    return std::sqrt(1 - power(settings.beta2, number + 1));
  }

  ValueRule rule(const SliceUpdate& update, double epsilon, double decay, double shrink) const {
    double rate = update.learningRate * rootCorrection(update.number) /
                  (1 - power(settings.beta1, update.number + 1));
    return {.kind = ValueRule::ADAM,
        .states = stateArrays(),
        .rescale = update.rescale,
        .decay = float(decay),
        .learningRate = float(rate),
        .keptOfMean = float(settings.beta1),
        .newOfMean = float(1 - settings.beta1),
        .keptOfSquare = float(settings.beta2),
        .newOfSquare = float(1 - settings.beta2),
        .epsilonOutside = float(epsilon),
        .shrink = float(shrink)};
  }

  const Settings settings;
};

// Kingma and Ba 2015 (arXiv 1412.6980). With `epsilonComesLast`, this is algorithm 1, as in
// PyTorch. Otherwise it is the variant at the end of section 2, as in TensorFlow and MXNet: the
// rate has the bias corrections of both moments, so epsilon is added to the uncorrected root.
class Adam final: public Moments {
public:
  Adam(Settings settings, bool epsilonComesLast)
      : Moments(settings), epsilonComesLast(epsilonComesLast) {}
  kj::StringPtr name() const override { return "adam"; }
  kj::Maybe<ValueRule> valueRule(const SliceUpdate& update) const override {
    double epsilon = settings.epsilon;
    if (epsilonComesLast) epsilon *= rootCorrection(update.number);
    return rule(update, epsilon, update.decay, 0);
  }

private:
  bool epsilonComesLast;
};

// Loshchilov and Hutter 2019 (arXiv 1711.05101), algorithm 2. As in PyTorch, the decay is
// multiplied by the learning rate, and epsilon is added to the corrected root:
//   w ← w - rate · decay · w
//   w ← w - rate / (1 - beta1^t) · m / (sqrt(v) / sqrt(1 - beta2^t) + epsilon)
// The second line is adam's step with epsilon · sqrt(1 - beta2^t) added to the uncorrected root.
class Adamw final: public Moments {
public:
  using Moments::Moments;
  kj::StringPtr name() const override { return "adamw"; }
  kj::Maybe<ValueRule> valueRule(const SliceUpdate& update) const override {
    return rule(update, settings.epsilon * rootCorrection(update.number), 0,
        update.learningRate * update.decay);
  }
};

// The paper's defaults, except for the decay.
Settings readMoments(configs::Reader& reader, kj::StringPtr epsilonDoc) {
  Settings settings;
  settings.learningRate = readLearningRate(reader, 0.001);
  settings.beta1 = readKeptShare(
      reader, "beta1", "Share of the gradient's moving mean that each step keeps.", 0.9);
  settings.beta2 = readKeptShare(
      reader, "beta2", "Share of the squared gradient's moving mean that each step keeps.", 0.999);
  settings.epsilon = reader.real("epsilon", epsilonDoc, {.atLeast = 1e-30}, 1e-8);
  return settings;
}

}  // namespace

OptimizerMaker readAdam(configs::Reader& reader) {
  Settings settings = readMoments(reader,
      "Added to the square root of the squared gradient's mean. With the conventions `torch`, it "
      "is added after the bias correction of that mean (torch.optim.Adam). With the others, it is "
      "added before (TensorFlow, MXNet).");
  settings.weightDecay = readWeightDecay(reader);
  return [settings](const Conventions& conventions) -> kj::Own<const Optimizer> {
    return kj::heap<Adam>(settings, conventions.epsilonComesLast);
  };
}

OptimizerMaker readAdamw(configs::Reader& reader) {
  Settings settings = readMoments(reader,
      "Added to the square root of the squared gradient's mean, after the bias correction of that "
      "mean (torch.optim.AdamW), with all `model.conventions`.");
  // PyTorch's.
  settings.weightDecay = readDecoupledDecay(reader, 0.01);
  return [settings](
             const Conventions&) -> kj::Own<const Optimizer> { return kj::heap<Adamw>(settings); };
}

}  // namespace nn
