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

namespace {

kj::String countedHow(const Rounds& rounds) {
  switch (rounds.counted) {
    case Rounds::FIRST:
      return kj::str(", the first ", rounds.aggregate, " of ", rounds.workers);
    case Rounds::ANY:
      return kj::str(", any ", rounds.aggregate);
    case Rounds::ALL:
      return kj::str();
    case Rounds::EACH:
      return rounds.isBounded() ? kj::str(", staleness ", rounds.staleness) : kj::str();
  }
  KJ_UNREACHABLE;
}

}  // namespace

kj::String KJ_STRINGIFY(const Rounds& rounds) {
  return kj::str(rounds.mode, countedHow(rounds), rounds.codec);
}

}  // namespace rpc
