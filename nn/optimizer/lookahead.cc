#include "nn/optimizer/lookahead.h"

#include <kj/debug.h>
#include <string.h>

#include "configs/language/each_instruction_set.h"
#include "nn/loops/power.h"

namespace nn {
namespace {

// slow ← slow + step · (values - slow); values ← slow
EACH_INSTRUCTION_SET void drawBack(
    float* __restrict__ values, float* __restrict__ slow, size_t size, float step) {
  for (size_t i = 0; i < size; ++i) {
    slow[i] = slow[i] + step * (values[i] - slow[i]);
    values[i] = slow[i];
  }
}

}  // namespace

bool Lookahead::isDueAfter(uint64_t update, const RunLength& run) const {
  uint64_t done = update + 1;
  return done % every == 0 || done == run.updates;
}

void Lookahead::apply(uint64_t update, const RunLength& run, kj::ArrayPtr<float> values,
    kj::ArrayPtr<float> slow) const {
  KJ_REQUIRE(values.size() == slow.size(), values.size(), slow.size());
  KJ_IF_MAYBE(step, stepAfter(update, run)) {
    if (*step == 0) {
      memcpy(values.begin(), slow.begin(), values.asBytes().size());
    } else {
      drawBack(values.begin(), slow.begin(), values.size(), *step);
    }
  }
}

kj::Maybe<float> Lookahead::stepAfter(uint64_t update, const RunLength& run) const {
  if (!isDueAfter(update, run)) return nullptr;
  uint64_t done = update + 1;
  if (done % every != 0) return 0.0f;
  double gone = done >= run.updates ? 1 : double(done) / double(run.updates);
  return float(1 - decay * realPower(gone, power));
}

Lookahead Lookahead::inStepsOf(uint64_t updates) const {
  Lookahead own = *this;
  own.every = kj::max(1u, every / updates);
  return own;
}

void Lookahead::check(const RunLength& run, configs::Diagnostics& diagnostics) const {
  // At the last update the share is `decay`. With a decay of 1, drawing back changes nothing.
  uint64_t last = decay == 1 ? run.updates - 1 : run.updates;
  if (every <= last) return;
  diagnostics.error(everySpan,
      kj::str("the run of ", run.updates, run.updates == 1 ? " update" : " updates",
          " ends before the slow copy moves for the first time, so it would end with its initial "
          "weights"),
      last == 0 ? kj::str("make the run longer, or leave the lookahead out")
                : kj::str("make `every` at most ", last, ", or the run longer"));
}

Lookahead Lookahead::read(configs::Reader& reader) {
  Lookahead lookahead;
  // The paper's values for CIFAR-10, except for alpha, which is 0.8 or 0.5 there.
  lookahead.every = uint64_t(reader.integer("every",
      "Number of updates after which the slow values move and the weights are set to them. Each "
      "worker does the same with its own moving statistics after this many of its own steps, or, "
      "in `dist_async`, `dist_ssp` and `dc_asgd`, after `every` / workers steps, rounded down.",
      {.atLeast = 1, .atMost = 1 << 30}, 5));
  lookahead.decay = reader.real("decay",
      "The new slow values are decay · the old slow values + (1 - decay) · the trained values. The "
      "paper's alpha is 1 - decay.",
      {.atLeast = 0, .atMost = 1}, 0.5);
  lookahead.power = reader.real("power",
      "Multiplies `decay` by (updates done / updates of the run)^power. 0 keeps `decay` constant.",
      {.atLeast = 0, .atMost = 1000}, 0);
  if (lookahead.decay == 1 && lookahead.power == 0) {
    reader.error("decay",
        "with `decay = 1` and `power = 0` the slow values never change, so the run would end with "
        "its initial weights",
        "make `decay` less than 1, or `power` more than 0", {"power"_kj});
  }
  lookahead.everySpan = reader.span("every");
  return lookahead;
}

}  // namespace nn
