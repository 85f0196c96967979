// runner/sweep/validated_epochs.h: when all workers of a run have validated an epoch, for the rungs
// of a sweep.
#pragma once

#include <kj/map.h>

#include "runner/logs/job.capnp.h"

namespace runner {

using kj::uint;

struct ValidatedEpoch {
  uint epoch;
  double accuracy;  // the same figure as in the run's record, which a later call uses
  bool isLast;      // the run ends after it
};

// Collects what the workers of one run report. They meet at the end of each epoch: nobody reports
// another epoch before all have reported this one.
class ValidatedEpochs {
public:
  // `workers` is how many the file of the run names.
  explicit ValidatedEpochs(uint workers): named(workers) {}

  // Takes the events that a launcher sees, in their order. Returns an epoch if this event is the
  // last of those by which all present workers have validated it. Otherwise returns null.
  kj::Maybe<ValidatedEpoch> take(Event::Reader event);

private:
  void beginWith(capnp::List<uint32_t>::Reader ranks);
  kj::Maybe<ValidatedEpoch> complete();

  const uint named;
  kj::HashSet<uint> members;   // the ranks of the workers of the job
  kj::HashSet<uint> reported;  // ranks that have reported `latest`
  ValidatedEpoch latest{};     // its accuracy is the sum over `reported`
};

}  // namespace runner
