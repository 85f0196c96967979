#include "rpc/testing/test_setting.h"

#include <kj/debug.h>

#include "rpc/modes/delay_compensation.h"
#include "rpc/modes/easgd_mode.h"
#include "rpc/store/worker_update.h"
#include "rpc/testing/test_model.h"

namespace rpc {

namespace {

// Values are multiples of this number. Their sums, divided by up to six pushes, are whole numbers,
// which are exact in float32.
constexpr int64_t UNIT = 60;

// The updater of a server, with the model's rule.
class RuleUpdater final: public Updater {
public:
  explicit RuleUpdater(const ModelRule& rule): rule(rule) {}

  uint stateArrays(const Slice&) const override { return 0; }

  void update(const Slice& slice, const Round& round, kj::ArrayPtr<const float> current,
      kj::ArrayPtr<float> next, kj::ArrayPtr<float>) override {
    KJ_REQUIRE(current.begin() != next.begin() && round.gradientSum.size() == slice.size);
    float rate = float(rule.rate) / kj::max(uint64_t(1), round.staleness);
    for (uint64_t i = 0; i < slice.size; i++) {
      next[i] = current[i] + rate * (round.gradientSum[i] / round.divisor);
    }
  }

private:
  const ModelRule rule;
};

Rounds drawRounds(Way way, Dice& dice) {
  uint workers = dice.roll(1, 5);
  switch (way) {
    case Way::ALL:
      // These three count in the same way.
      if (dice.onceIn(2)) return roundsOf("dist_sync", workers);
      if (dice.onceIn(2)) return roundsOf("dist_ssp", workers, "staleness = 0");
      return roundsOf("local_sgd", workers);
    case Way::SUMS:
      return roundsOf("dist_sync", workers, "update = 'worker'");
    case Way::OWN_SHARDS:
      return roundsOf("allreduce", workers);
    case Way::FIRST:
      workers = dice.roll(2, 5);
      return roundsOf("dist_sync", workers, kj::str("aggregate = ", dice.roll(1, workers - 1)));
    case Way::ANY:
      return roundsOf("dist_sync", workers,
          kj::str("aggregate = ", dice.roll(1, 6), "\naggregate_from = 'any'"));
    case Way::EACH:
      return roundsOf("dist_async", workers);
    case Way::STALENESS_AWARE:
      return roundsOf("dist_async", workers, "staleness_aware = true");
    case Way::BOUNDED:
      return roundsOf("dist_ssp", workers, kj::str("staleness = ", dice.roll(1, 4)));
    case Way::COMPENSATED:
      return roundsOf("dc_asgd", workers);
    case Way::ELASTIC:
      return roundsOf("easgd", workers);
  }
  KJ_UNREACHABLE;
}

}  // namespace

Setting Setting::draw(Way way, Dice& dice) {
  Setting setting{.way = way, .rounds = drawRounds(way, dice), .rule = {}};
  if (way == Way::STALENESS_AWARE) setting.rule = {ModelRule::STALENESS_AWARE, -0.5, 0, 1e-2};
  // Pulls values back to those that were seen, so that they stay small.
  if (way == Way::COMPENSATED) setting.rule = {ModelRule::COMPENSATED, -0.25, 0.5, 1e-4};
  if (way == Way::ELASTIC) setting.rule = {ModelRule::ELASTIC, 0.25, 0, 1e-4};
  kj::Vector<uint64_t> sizes;
  for (uint64_t keys = dice.roll(1, 4); keys > 0; keys--) sizes.add(dice.roll(1, 9));
  // A key that is cut into slices.
  if (dice.onceIn(20)) sizes.add(dice.roll(1025, 2100));
  setting.sizes = sizes.releaseAsArray();
  if (way == Way::SUMS) setting.rule.kind = ModelRule::SUM;
  setting.deal(way == Way::OWN_SHARDS ? setting.rounds.workers : dice.roll(1, 3));
  setting.initial = kj::heapArray<float>(setting.placement.parameters());
  for (auto i: kj::indices(setting.initial)) {
    setting.initial[i] = setting.gradient(noise(7, i, 7));
  }
  return setting;
}

void Setting::deal(uint shards) {
  placement = placeBalanced(makeKeys(sizes), 4096, shards);
}

float Setting::gradient(float noise) const {
  if (rough) return noise;
  int64_t whole = int64_t(8 * noise);
  bool staysSmall = rule.kind == ModelRule::COMPENSATED || rule.kind == ModelRule::ELASTIC;
  return staysSmall ? 0.25f * whole : UNIT * whole;
}

kj::Own<Updater> Setting::newUpdater() const {
  if (rule.kind == ModelRule::SUM) return kj::heap<SumUpdater>();
  if (rule.kind == ModelRule::ELASTIC) return kj::heap<CentreUpdater>(float(rule.rate));
  auto updater = kj::heap<RuleUpdater>(rule);
  if (rule.kind != ModelRule::COMPENSATED) return updater;
  return kj::heap<DelayCompensation>(
      kj::mv(updater), CompensationConfig{.lambda = rule.lambda, .adaptive = false}, 1);
}

}  // namespace rpc
