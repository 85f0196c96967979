#include "runner/roles/best_epoch.h"

namespace runner {

bool BestEpoch::take(uint newEpoch, const nn::BatchResult& validated) {
  if (validated.images == 0) return false;
  double newAccuracy = validated.accuracy();
  if (epoch > 0 && newAccuracy <= accuracy) return false;
  epoch = newEpoch;
  accuracy = newAccuracy;
  return true;
}

void BestEpoch::visitState(configs::StateVisitor& visitor) {
  visitor.count("best.epoch", epoch);
  visitor.number("best.accuracy", accuracy);
}

}  // namespace runner
