#include "rpc/rounds.h"

namespace rpc {

uint Rounds::pushesPerUpdate() const {
  switch (counted) {
    case ALL:
    case FIRST:
      return workers;
    case ANY:
      return kj::max(aggregate, workers);
    case EACH:
      return 1;
  }
  KJ_UNREACHABLE;
}

kj::String KJ_STRINGIFY(const Rounds& rounds) {
  switch (rounds.counted) {
    case Rounds::FIRST:
      return kj::str(rounds.mode, ", the first ", rounds.aggregate, " of ", rounds.workers);
    case Rounds::ANY:
      return kj::str(rounds.mode, ", any ", rounds.aggregate);
    case Rounds::ALL:
      return kj::str(rounds.mode);
    case Rounds::EACH:
      return rounds.isBounded() ? kj::str(rounds.mode, ", staleness ", rounds.staleness)
                                : kj::str(rounds.mode);
  }
  KJ_UNREACHABLE;
}

}  // namespace rpc
