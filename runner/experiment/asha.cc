#include "runner/experiment/asha.h"

#include <math.h>

namespace runner {

AshaConfig AshaConfig::read(configs::Reader& reader) {
  AshaConfig config;
  config.firstEpoch = reader.integer("first_epoch",
      "The first epoch after which a run can be stopped.", {.atLeast = 1, .atMost = 1000000}, 1);
  config.keepOneIn = reader.integer("keep_one_in",
      "A run goes on after a check if it is among the best 1 / keep_one_in of the runs that have "
      "reached this check so far. Each check comes at keep_one_in times the epoch of the one "
      "before.",
      {.atLeast = 2, .atMost = 1000}, 3);
  return config;
}

kj::String AshaConfig::print() const {
  return kj::str(
      "{ kind = \"asha\", first_epoch = ", firstEpoch, ", keep_one_in = ", keepOneIn, " }");
}

bool Asha::isRung(uint epoch) const {
  uint64_t rung = config.firstEpoch;
  while (rung < epoch) rung *= config.keepOneIn;
  return rung == epoch;
}

bool Asha::keeps(uint epoch, double accuracy) {
  if (!isRung(epoch)) return true;
  Rung* rung = nullptr;
  for (auto& known: rungs) {
    if (known.epoch == epoch) rung = &known;
  }
  if (rung == nullptr) rung = &rungs.add(Rung{epoch, {}});

  if (isnan(accuracy)) accuracy = -kj::inf();
  rung->accuracies.add(accuracy);
  size_t better = 0;
  for (double other: rung->accuracies) better += other > accuracy;
  size_t kept = (rung->accuracies.size() + config.keepOneIn - 1) / config.keepOneIn;
  return better < kept;
}

}  // namespace runner
