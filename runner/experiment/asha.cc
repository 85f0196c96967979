#include "runner/experiment/asha.h"

#include <math.h>

namespace runner {

AshaConfig AshaConfig::read(configs::Reader& reader) {
  AshaConfig config;
  config.firstEpoch = reader.integer("first_epoch",
      "The first epoch after which a run can be stopped.", {.atLeast = 1, .atMost = 1000000}, 1);
  config.keepOneIn = reader.integer("keep_one_in",
      "At each check, the best 1 / keep_one_in of the runs that have reached this check so far "
      "continue. The epoch of each check is keep_one_in times that of the check before.",
      {.atLeast = 2, .atMost = 1000}, 3);
  return config;
}

kj::String AshaConfig::print() const {
  return kj::str(
      "{ kind = \"asha\", first_epoch = ", firstEpoch, ", keep_one_in = ", keepOneIn, " }");
}

kj::Maybe<kj::String> whyStopsNothing(const AshaConfig& config, uint epochs, bool validates) {
  constexpr kj::StringPtr NOTHING = "sweep.stop stops no run, because "_kj;
  if (!validates) return kj::str(NOTHING, "there are no records to validate on");
  if (config.firstEpoch < epochs) return nullptr;
  return kj::str(NOTHING, "its first_epoch is ", config.firstEpoch,
      ", and no run continues after epoch ", epochs);
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
