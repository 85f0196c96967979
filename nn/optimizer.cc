#include "nn/optimizer.h"

#include <kj/debug.h>
#include <kj/function.h>

#include "nn/sgd_loop.h"

namespace nn {
namespace {

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
    size_t size = update.current.size();
    KJ_REQUIRE(update.gradient.size() == size && update.next.size() == size &&
                   update.state.size() == size * stateArrays(),
        size, update.gradient.size(), update.next.size(), update.state.size());
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

constexpr configs::Kind<Maker> OPTIMIZERS[] = {
    {"sgd", "Stochastic gradient descent with momentum and weight decay.", readSgd},
};

}  // namespace

kj::Own<const Optimizer> readOptimizer(
    configs::Reader& reader, kj::StringPtr key, const Conventions& conventions) {
  return reader.kind<Maker>(
      key, "The rule that turns gradients into new parameters.", OPTIMIZERS, "sgd")(conventions);
}

}  // namespace nn
