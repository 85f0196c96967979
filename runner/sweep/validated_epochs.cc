#include "runner/sweep/validated_epochs.h"

namespace runner {

kj::Maybe<ValidatedEpoch> ValidatedEpochs::take(Event::Reader event) {
  switch (event.which()) {
    case Event::LISTENING:
      beginWith(event.getListening().getWorkers());
      return nullptr;
    case Event::STARTED:
    case Event::CONTINUED:
      // The workers validate the epoch again.
      reported = {};
      latest = {};
      return nullptr;
    case Event::MEMBERSHIP:
      if (event.getMembership().getJoined()) {
        members.upsert(event.getIndex(), [](uint&, uint) {});
      } else {
        members.eraseMatch(event.getIndex());
      }
      return complete();
    case Event::VALIDATED: {
      auto validated = event.getValidated();
      reported.upsert(event.getIndex(), [](uint&, uint) {});
      latest = {
          validated.getEpoch(), latest.accuracy + validated.getAccuracy(), validated.getLast()};
      return complete();
    }
    default:
      return nullptr;
  }
}

// A job that continues without lost workers names those that it has. Others have all.
void ValidatedEpochs::beginWith(capnp::List<uint32_t>::Reader ranks) {
  members = {};
  for (uint rank: ranks) members.insert(rank);
  for (uint rank = 0; ranks.size() == 0 && rank < named; rank++) members.insert(rank);
}

kj::Maybe<ValidatedEpoch> ValidatedEpochs::complete() {
  if (reported.size() == 0) return nullptr;
  for (uint rank: members) {
    if (!reported.contains(rank)) return nullptr;
  }
  auto whole = latest;
  whole.accuracy /= reported.size();
  reported = {};
  latest = {};
  return whole;
}

}  // namespace runner
