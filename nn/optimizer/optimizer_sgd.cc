// Gradient descent with momentum: sgd, and LARS, which gives each key its own rate.
#include <cmath>

#include "nn/loops/squares.h"
#include "nn/optimizer/optimizer_rows.h"

namespace nn {
namespace {

class Sgd final: public Optimizer {
public:
  struct Settings {
    double learningRate;
    double momentum;
    bool nesterov;
    double weightDecay;
  };
  Sgd(Settings settings, const Conventions& conventions)
      : settings(settings), conventions(conventions) {}

  kj::StringPtr name() const override { return "sgd"; }
  uint stateArrays() const override { return settings.momentum == 0 ? 0 : 1; }
  double learningRate() const override { return settings.learningRate; }
  double weightDecay() const override { return settings.weightDecay; }

  kj::Maybe<ValueRule> valueRule(const SliceUpdate& update) const override {
    return ValueRule{.kind = kind(),
        .states = stateArrays(),
        .rescale = update.rescale,
        .decay = float(update.decay),
        .learningRate = float(update.learningRate),
        .momentum = float(settings.momentum)};
  }

private:
  ValueRule::Kind kind() const {
    if (settings.momentum == 0) return ValueRule::SGD;
    if (settings.nesterov) return ValueRule::SGD_NESTEROV;
    return conventions.learningRateInsideMomentum ? ValueRule::SGD_RATE_INSIDE
                                                  : ValueRule::SGD_RATE_OUTSIDE;
  }

  Settings settings;
  const Conventions& conventions;
};

// You, Gitman and Ginsburg 2017 (arXiv 1708.03888), algorithm 1. The rate multiplies what enters
// the momentum, as in the paper. Epsilon, and a trust of 1 for |w| = 0 or |g| = 0, are those of
// MXNet's LARS:
//   g = rescale · gradient
//   trust = |w| = 0 or |g| = 0 ? 1 : trust_ratio · |w| / (|g| + decay · |w| + epsilon)
//   v ← momentum · v - rate · trust · (g + decay · w);  w ← w + v
class Lars final: public Optimizer {
public:
  struct Settings {
    double learningRate;
    double momentum;
    double weightDecay;
    double trustRatio;
    double epsilon;
    bool everyKey;
  };
  explicit Lars(Settings settings): settings(settings) {}

  kj::StringPtr name() const override { return "lars"; }
  uint stateArrays() const override { return settings.momentum == 0 ? 0 : 1; }
  bool needsWholeKeys() const override { return true; }
  double learningRate() const override { return settings.learningRate; }
  double weightDecay() const override { return settings.weightDecay; }

  void apply(SliceUpdate update) const override {
    ValueRule rule{.kind = settings.momentum == 0 ? ValueRule::SGD : ValueRule::SGD_RATE_INSIDE,
        .states = stateArrays(),
        .rescale = update.rescale,
        .decay = float(update.decay),
        .learningRate = float(update.learningRate * trust(update)),
        .momentum = float(settings.momentum)};
    applyRule(rule, update);
  }

private:
  double trust(const SliceUpdate& update) const {
    if (update.role != Key::WEIGHT && !settings.everyKey) return 1;
    double length = std::sqrt(sumOfSquares(update.current.begin(), update.current.size()));
    double slope =
        update.rescale * std::sqrt(sumOfSquares(update.gradient.begin(), update.gradient.size()));
    if (length == 0 || slope == 0) return 1;
    return settings.trustRatio * length / (slope + update.decay * length + settings.epsilon);
  }

  Settings settings;
};

}  // namespace

OptimizerMaker readSgd(configs::Reader& reader) {
  Sgd::Settings settings;
  // MXNet's default.
  settings.learningRate = readLearningRate(reader, 0.01);
  settings.momentum = readMomentum(reader, 0);
  settings.nesterov = reader.flag("nesterov",
      "Uses Nesterov's momentum (1983) as PyTorch's SGD and MXNet's NAG (2015) do. A step is the "
      "learning rate × (gradient + `momentum` × the new momentum). With all `model.conventions`, "
      "the learning rate multiplies the momentum.",
      false);
  settings.weightDecay = reader.real("weight_decay",
      "Pulls each parameter towards 0: this factor times the parameter is added to its gradient.",
      {.atLeast = 0}, 0);
  if (settings.nesterov && settings.momentum == 0 && !reader.isManual()) {
    reader.error("nesterov", "`nesterov` needs a momentum", "add momentum = 0.9, or leave it out",
        {"momentum"_kj});
  }
  return [settings](const Conventions& conventions) -> kj::Own<const Optimizer> {
    return kj::heap<Sgd>(settings, conventions);
  };
}

OptimizerMaker readLars(configs::Reader& reader) {
  Lars::Settings settings;
  settings.learningRate = readLearningRate(reader, 0.1);
  settings.momentum = readMomentum(reader, 0.9);
  settings.weightDecay = readWeightDecay(reader);
  // The paper's.
  settings.trustRatio = reader.real("trust_ratio",
      "The learning rate of a key is multiplied by trust_ratio × |w| / (|g| + decay × |w| + "
      "epsilon). |w| and |g| are the Euclidean norms of its values and of its gradient.",
      {.above = 0}, 0.001);
  settings.epsilon =
      reader.real("epsilon", "Added to the denominator of the trust ratio.", {.atLeast = 0}, 0);
  settings.everyKey = reader.flag("every_key",
      "Also adapts the learning rates of biases, gammas and betas. If false, these keys use the "
      "learning rate unchanged.",
      false);
  return [settings](
             const Conventions&) -> kj::Own<const Optimizer> { return kj::heap<Lars>(settings); };
}

}  // namespace nn
