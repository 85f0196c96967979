// Muon: steps of weights made orthogonal.
#include <kj/debug.h>
#include <kj/string.h>

#include <cmath>

#include "nn/loops/squares.h"
#include "nn/optimizer/newton_schulz.h"
#include "nn/optimizer/optimizer_rows.h"

namespace nn {
namespace {

// The factor of a step besides the learning rate.
struct StepScale {
  const char* name;
  const char* doc;
  double (*of)(double rows, double cols);
};

constexpr StepScale SCALES[] = {
    {"none", "1, as in airbench94_muon.", [](double, double) { return 1.0; }},
    {"aspect", "sqrt(max(1, rows / cols)), as in Jordan's own Muon.",
        [](double rows, double cols) { return std::sqrt(rows > cols ? rows / cols : 1.0); }},
    {"rms",
        "0.2 sqrt(max(rows, cols)), which makes steps as large as Adam's (Liu et al. 2025, arXiv "
        "2502.16982).",
        [](double rows, double cols) { return 0.2 * std::sqrt(rows > cols ? rows : cols); }},
};

// Jordan 2024 (kellerjordan.github.io/posts/muon): a key is the matrix of its rows (filters, units)
// and cols (all other dimensions).
//   g = rescale · gradient
//   m ← momentum · m + g
//   o = NewtonSchulz(nesterov ? g + momentum · m : m), see orthogonalize()
//   w ← w - rate · decay · w - rate · scale · o
// With `normalise`, as airbench94_muon has it, w · sqrt(rows) / |w| replaces w on the right. Both
// systems do the Newton-Schulz steps in bfloat16, this one in float32.
class Muon final: public Optimizer {
public:
  struct Settings {
    double learningRate;
    double momentum;
    bool nesterov;
    double weightDecay;
    uint steps;
    const StepScale* scale;
    bool normalise;
  };
  explicit Muon(Settings settings): settings(settings) {}

  kj::StringPtr name() const override { return "muon"; }
  // The momentum, and memory for the Newton-Schulz steps, so that an update does not allocate.
  uint stateArrays() const override { return 4; }
  bool needsWholeKeys() const override { return true; }
  bool isForWeightsAlone() const override { return true; }
  double learningRate() const override { return settings.learningRate; }
  double weightDecay() const override { return settings.weightDecay; }

  void apply(SliceUpdate update) const override {
    size_t size = sizeOf(update, stateArrays());
    KJ_REQUIRE(update.role == Key::WEIGHT && update.rows * update.cols == size,
        "muon updates whole weights", update.role, update.rows, update.cols, size);
    float* state = update.state.begin();
    momentumStep({.size = size,
        .gradient = update.gradient.begin(),
        .next = update.next.begin(),
        .state = state,
        .rescale = update.rescale,
        .momentum = float(settings.momentum),
        .nesterov = settings.nesterov});
    orthogonalize({.rows = update.rows,
        .cols = update.cols,
        .steps = settings.steps,
        .matrix = update.next.begin(),
        .scratch = {state + size, state + 2 * size, state + 3 * size}});

    double keep = 1 - update.learningRate * update.decay;
    if (settings.normalise) {
      double length = std::sqrt(sumOfSquares(update.current.begin(), size));
      if (length > 0) keep *= std::sqrt(double(update.rows)) / length;
    }
    double scale = settings.scale->of(double(update.rows), double(update.cols));
    shrinkAndStep(size, update.current.begin(), update.next.begin(), float(1 - keep),
        float(update.learningRate * scale));
  }

private:
  Settings settings;
};

}  // namespace

OptimizerMaker readMuon(configs::Reader& reader) {
  Muon::Settings settings;
  // Jordan's.
  settings.learningRate = readLearningRate(reader, 0.02);
  settings.momentum = readMomentum(reader, 0.95);
  settings.nesterov = reader.flag("nesterov",
      "Makes g + momentum × m orthogonal, where g is the gradient and m the new momentum. If "
      "false, makes m orthogonal.",
      true);
  settings.weightDecay = readDecoupledDecay(reader, 0);
  settings.steps = uint(reader.integer("steps",
      "Number of Newton-Schulz iterations. More iterations bring the singular values of a step "
      "nearer to 1. Each iteration takes 4 m² n + 2 m³ FLOP, where m is the smaller of rows and "
      "cols, and n the larger.",
      {.atLeast = 1, .atMost = 100}, 5));
  settings.scale =
      &reader.choose("scale", "A further factor of each step, in addition to the learning rate.",
          kj::arrayPtr(SCALES, kj::size(SCALES)), "aspect");
  settings.normalise = reader.flag("normalise",
      "Scales each weight matrix to the Frobenius norm sqrt(rows) before each step, as "
      "airbench94_muon does.",
      false);
  return [settings](
             const Conventions&) -> kj::Own<const Optimizer> { return kj::heap<Muon>(settings); };
}

}  // namespace nn
