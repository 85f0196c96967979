// RMSprop.
#include "nn/optimizer/optimizer_rows.h"

namespace nn {
namespace {

// Tieleman and Hinton 2012 (lecture 6.5 of "Neural Networks for Machine Learning"); `centered` is
// Graves 2013 (arXiv 1308.0850), equations 38 to 45. Systems differ in three things. The
// conventions decide the first two:
// - Epsilon is below the root in TensorFlow and MXNet, outside of it in PyTorch.
// - The rate is inside the momentum in TensorFlow and MXNet, outside of it in PyTorch.
// - The squares begin at 1 in TensorFlow, and at 0 in the others and here.
class Rmsprop final: public Optimizer {
public:
  struct Settings {
    double learningRate;
    double momentum;
    double weightDecay;
    double smoothing;
    double epsilon;
    kj::Maybe<bool> epsilonBelowRoot;  // null: decided by the conventions
    bool centered;
  };
  Rmsprop(Settings settings, const Conventions& conventions)
      : settings(settings), conventions(conventions) {}

  kj::StringPtr name() const override { return "rmsprop"; }
  uint stateArrays() const override {
    return 1 + (settings.centered ? 1 : 0) + (settings.momentum == 0 ? 0 : 1);
  }
  double learningRate() const override { return settings.learningRate; }
  double weightDecay() const override { return settings.weightDecay; }

  kj::Maybe<ValueRule> valueRule(const SliceUpdate& update) const override {
    bool below = settings.epsilonBelowRoot.orDefault(!conventions.epsilonComesLast);
    float rate = float(update.learningRate), epsilon = float(settings.epsilon);
    float smoothing = float(settings.smoothing), rest = float(1 - settings.smoothing);
    bool inside = settings.momentum != 0 && conventions.learningRateInsideMomentum;
    return ValueRule{
        .kind = settings.momentum == 0 ? ValueRule::RMSPROP : ValueRule::RMSPROP_WITH_MOMENTUM,
        .states = stateArrays(),
        .isCentered = settings.centered,
        .rescale = update.rescale,
        .decay = float(update.decay),
        .learningRate = inside ? 1 : rate,
        .momentum = float(settings.momentum),
        .rateInside = inside ? rate : 1,
        .keptOfMean = smoothing,
        .newOfMean = rest,
        .keptOfSquare = smoothing,
        .newOfSquare = rest,
        .epsilonBelowRoot = below ? epsilon : 0,
        .epsilonOutside = below ? 0 : epsilon};
  }

private:
  Settings settings;
  const Conventions& conventions;
};

}  // namespace

OptimizerMaker readRmsprop(configs::Reader& reader) {
  Rmsprop::Settings settings;
  // Hinton's rate and smoothing, which TensorFlow and MXNet took over.
  settings.learningRate = readLearningRate(reader, 0.001);
  settings.momentum = readMomentum(reader, 0);
  settings.weightDecay = readWeightDecay(reader);
  settings.smoothing = readKeptShare(reader, "smoothing",
      "Share of the squared gradient's moving mean that each step keeps.", 0.9);
  settings.epsilon = reader.real("epsilon",
      "Added to the squared gradient's mean or to its square root, so that a step never divides by "
      "0.",
      {.atLeast = 1e-30}, 1e-8);
  settings.epsilonBelowRoot = reader.maybeFlag("epsilon_below_root",
      "Adds epsilon to the squared gradient's mean, below the square root (TensorFlow, MXNet). If "
      "false, adds it to the root (PyTorch). Default: as `model.conventions` says.");
  settings.centered = reader.flag("centered",
      "Divides by the moving standard deviation of the gradient: below the root, the square of the "
      "gradient's moving mean is subtracted (Graves 2013).",
      false);
  return [settings](const Conventions& conventions) -> kj::Own<const Optimizer> {
    return kj::heap<Rmsprop>(settings, conventions);
  };
}

}  // namespace nn
