#include "nn/optimizer.h"

#include <kj/debug.h>
#include <kj/function.h>

#include <cmath>

#include "nn/adam_loop.h"
#include "nn/power.h"
#include "nn/sgd_loop.h"

namespace nn {
namespace {

// The length of all arrays.
size_t sizeOf(const Update& update, uint stateArrays) {
  size_t size = update.current.size();
  KJ_REQUIRE(update.gradient.size() == size && update.next.size() == size &&
                 update.state.size() == size * stateArrays,
      size, update.gradient.size(), update.next.size(), update.state.size());
  return size;
}

class Sgd final: public Optimizer {
public:
  struct Settings {
    double learningRate;
    double momentum;
    double weightDecay;
  };
  Sgd(Settings settings, const Conventions& conventions)
      : settings(settings), conventions(conventions) {}

  kj::StringPtr name() const override { return "sgd"; }
  uint stateArrays() const override { return settings.momentum == 0 ? 0 : 1; }
  double learningRate() const override { return settings.learningRate; }
  double weightDecay() const override { return settings.weightDecay; }

  void apply(Update update) const override {
    size_t size = sizeOf(update, stateArrays());
    SgdLoop loop{.size = size,
        .gradient = update.gradient.begin(),
        .current = update.current.begin(),
        .next = update.next.begin(),
        .state = update.state.begin(),
        .rescale = update.rescale,
        .learningRate = float(update.learningRate),
        .momentum = float(settings.momentum),
        .decay = float(update.decay)};
    if (settings.momentum == 0) {
      sgdPlain(loop);
    } else if (conventions.learningRateInsideMomentum) {
      sgdRateInside(loop);
    } else {
      sgdRateOutside(loop);
    }
  }

private:
  Settings settings;
  const Conventions& conventions;
};

// Kingma and Ba 2015 (arXiv 1412.6980), algorithm 1 in the order of the end of section 2: the
// corrections of both moments' bias go into the rate, so that epsilon stands beside the uncorrected
// root, as TensorFlow has it. With t the number of the update from 1:
//   rate_t = rate · sqrt(1 - beta2^t) / (1 - beta1^t)
class Adam final: public Optimizer {
public:
  struct Settings {
    double learningRate;
    double beta1;
    double beta2;
    double epsilon;
    double weightDecay;
  };
  explicit Adam(Settings settings): settings(settings) {}

  kj::StringPtr name() const override { return "adam"; }
  uint stateArrays() const override { return 2; }
  double learningRate() const override { return settings.learningRate; }
  double weightDecay() const override { return settings.weightDecay; }

  void apply(Update update) const override {
    size_t size = sizeOf(update, stateArrays());
    uint64_t t = update.number + 1;
    double rate = update.learningRate * std::sqrt(1 - power(settings.beta2, t)) /
                  (1 - power(settings.beta1, t));
    adam({.size = size,
        .gradient = update.gradient.begin(),
        .current = update.current.begin(),
        .next = update.next.begin(),
        .mean = update.state.begin(),
        .square = update.state.begin() + size,
        .rescale = update.rescale,
        .learningRate = float(rate),
        .beta1 = float(settings.beta1),
        .beta2 = float(settings.beta2),
        .epsilon = float(settings.epsilon),
        .decay = float(update.decay)});
  }

private:
  Settings settings;
};

// What a row reads; the conventions are known to readOptimizer() alone.
using Maker = kj::Function<kj::Own<const Optimizer>(const Conventions&)>;

Maker readSgd(configs::Reader& reader) {
  Sgd::Settings settings;
  // MXNet's default.
  settings.learningRate = reader.real("learning_rate", "Size of a step.", {.atLeast = 0}, 0.01);
  settings.momentum = reader.real(
      "momentum", "Share of the last step that goes into the next.", {.atLeast = 0, .below = 1}, 0);
  settings.weightDecay = reader.real(
      "weight_decay", "Pull of each parameter towards 0, times its value.", {.atLeast = 0}, 0);
  return [settings](const Conventions& conventions) -> kj::Own<const Optimizer> {
    return kj::heap<Sgd>(settings, conventions);
  };
}

Maker readAdam(configs::Reader& reader) {
  Adam::Settings settings;
  // The paper's defaults.
  settings.learningRate = reader.real("learning_rate", "Size of a step.", {.atLeast = 0}, 0.001);
  settings.beta1 = reader.real("beta1", "Share of the gradients' moving mean that a step keeps.",
      {.atLeast = 0, .below = 1}, 0.9);
  settings.beta2 =
      reader.real("beta2", "Share of the moving mean of their squares that a step keeps.",
          {.atLeast = 0, .below = 1}, 0.999);
  settings.epsilon =
      reader.real("epsilon", "Added to the root of the squares' mean.", {.atLeast = 1e-30}, 1e-8);
  settings.weightDecay = reader.real("weight_decay",
      "Pull of each parameter towards 0: times its value, added to its gradient.", {.atLeast = 0},
      0);
  return [settings](
             const Conventions&) -> kj::Own<const Optimizer> { return kj::heap<Adam>(settings); };
}

constexpr configs::Kind<Maker> OPTIMIZERS[] = {
    {"sgd", "Stochastic gradient descent with momentum and weight decay.", readSgd},
    {"adam", "Steps of a size of their own for each parameter (Kingma and Ba 2015).", readAdam},
};

}  // namespace

kj::Own<const Optimizer> readOptimizer(
    configs::Reader& reader, kj::StringPtr key, const Conventions& conventions) {
  return reader.kind<Maker>(
      key, "The rule that turns gradients into new parameters.", OPTIMIZERS, "sgd")(conventions);
}

}  // namespace nn
