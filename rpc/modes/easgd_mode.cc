#include "rpc/modes/easgd_mode.h"

#include <kj/debug.h>

#include "configs/language/reader.h"
#include "rpc/store/own_steps.h"

namespace rpc {

namespace {

class EasgdMode final: public Mode {
public:
  EasgdMode(const ModeRow& row, configs::Reader& reader)
      : Mode(row),
        period_steps(uint(reader.integer("period_steps",
            "For `easgd`: how many steps a worker makes between two exchanges with the servers. "
            "The last exchange of an epoch may come after fewer steps.",
            {.atLeast = 1, .atMost = 1 << 20}, 10))),
        movingRate(reader.maybeReal("moving_rate",
            "For `easgd`: in an exchange, the parameters of the worker and those of the servers "
            "each move towards the other by this share of their distance. Default: 0.9 / workers, "
            "at most 0.5.",
            {.above = 0, .atMost = 0.5})) {}

  Rounds rounds(uint workers) const override {
    return {.mode = row.name, .counted = Rounds::EACH, .workers = workers, .keepsSeen = true};
  }

  uint stepsPerUpdate(uint workers) const override { return workers; }

  kj::Maybe<uint> stepsAlone() const override { return period_steps; }

  kj::Own<KvStore> newStore(WorkerSetup setup) const override {
    // The worker moves by the same distance as the centre. It learns the centre c' only after the
    // centre has moved: x - c' = (1 - rate) · (x - c). So the worker moves by rate / (1 - rate) of
    // the remaining distance. With a rate above 0.5 it would move beyond c', and amplify the other
    // workers' contributions to c'.
    double rate = rateOf(setup.rounds.workers);
    return newOwnStepsStore(setup.placement, setup.rounds, setup.rank,
        {.steps = period_steps, .drawn = float(rate / (1 - rate))}, setup.optimizer,
        setup.parameters, setup.gradients, setup.memory);
  }

  kj::Own<Updater> newShardUpdater(kj::Own<Updater>, uint64_t, uint workers) const override {
    return kj::heap<CentreUpdater>(float(rateOf(workers)));
  }

  kj::Maybe<OwnUpdates> ownUpdates() const override {
    return OwnUpdates{
        "every worker updates its own values, on its host, and moves them "
        "towards the servers' values",
        "with its own gradients"};
  }

private:
  double rateOf(uint workers) const { return movingRate.orDefault(kj::min(0.5, 0.9 / workers)); }

  const uint period_steps;
  const kj::Maybe<double> movingRate;
};

}  // namespace

void CentreUpdater::update(const Slice& slice, const Round& round,
    kj::ArrayPtr<const float> current, kj::ArrayPtr<float> next, kj::ArrayPtr<float>) {
  KJ_REQUIRE(
      round.seen.size() == current.size(), "an easgd update lacks the values that the worker saw");
  for (uint64_t i = 0; i < slice.size; i++) {
    float own = round.seen[i] - round.gradientSum[i];
    next[i] = current[i] + movingRate * (own - current[i]);
  }
}

kj::Own<const Mode> readEasgdMode(const ModeRow& row, configs::Reader& reader) {
  return kj::heap<EasgdMode>(row, reader);
}

}  // namespace rpc
