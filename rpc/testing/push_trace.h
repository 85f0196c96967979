// rpc/testing/push_trace.h: who pushed and who rested, of one slice, and what follows from it.
#pragma once

#include <kj/array.h>
#include <kj/debug.h>
#include <kj/vector.h>

#include "rpc/rounds.h"
#include "rpc/testing/mode_model.h"

namespace rpc {

// A record of what came to a slice, in order. Knows nothing of how a mode counts.
class PushTrace {
public:
  void pushed(uint rank) { records.add(Record{rank, false}); }
  void rests(uint rank) { records.add(Record{rank, true}); }

  // Throws if the values that answer a push of `rank` now miss what the mode promises to be in
  // them: its own pushes, where none is dropped; and of every other worker that does not rest all
  // pushes of steps before c - s, where `rank` computes step c next and s is the bound on staleness
  // (Ho et al. 2013; 0 where all make a round). `model` tells what is in the values. Returns
  // whether the mode has a bound.
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
    bool rests;  // or pushed
  };
  kj::Vector<Record> records;
};

}  // namespace rpc
