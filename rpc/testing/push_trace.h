// rpc/testing/push_trace.h: records which workers pushed a slice and which rested, and checks a
// mode's promises.
#pragma once

#include <kj/array.h>
#include <kj/debug.h>
#include <kj/vector.h>

#include "rpc/rounds.h"
#include "rpc/testing/mode_model.h"

namespace rpc {

// The pushes and rests of one slice, in order. It does not know how a mode counts.
class PushTrace {
public:
  void pushed(uint rank) { records.add(Record{rank, false}); }
  void rests(uint rank) { records.add(Record{rank, true}); }

  // Throws if the values that now answer a push of `rank` lack pushes that the mode promises. These
  // are the worker's own pushes, if the mode drops none. If the mode has a bound s on staleness and
  // `rank` computes step c next, they are also the pushes of all steps before c - s of every other
  // worker that does not rest (Ho et al. 2013; s is 0 if a round takes a push of every worker).
  // `model` knows which pushes are in the values. Returns whether the mode has a bound.
  bool proves(const Rounds& rounds, uint rank, const SliceModel& model) const {
    uint count = rounds.workers;
    kj::Vector<uint64_t> steps;
    kj::Vector<bool> resting;
    for (uint i = 0; i < count; i++) steps.add(0), resting.add(false);
    uint atRest = 0;
    for (auto& record: records) {
      if (!record.rests) {
        KJ_REQUIRE(!resting[record.rank], "a worker pushed while it rested", record.rank);
        steps[record.rank]++;
        continue;
      }
      resting[record.rank] = true;
      if (++atRest < count) continue;
      for (auto& flag: resting) flag = false;
      atRest = 0;
    }
    if (rounds.counted == Rounds::FIRST || rounds.counted == Rounds::ANY) return false;
    KJ_REQUIRE(model.applied(rank) == steps[rank], "own pushes are missing", rank, steps[rank]);
    if (rounds.counted == Rounds::EACH && !rounds.isBounded()) return false;
    uint64_t bound = rounds.isBounded() ? rounds.staleness : 0;
    for (uint other = 0; other < count; other++) {
      KJ_REQUIRE(resting[other] || model.applied(other) + bound >= steps[rank],
          "values miss a push that is older than the bound", rank, other, steps[rank], bound);
    }
    return true;
  }

private:
  struct Record {
    uint rank;
    bool rests;  // otherwise it pushed
  };
  kj::Vector<Record> records;
};

}  // namespace rpc
