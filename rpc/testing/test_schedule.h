// rpc/testing/test_schedule.h: random schedules of workers and servers under a virtual clock,
// compared with the model at every event.
#pragma once

#include <kj/array.h>
#include <kj/memory.h>
#include <kj/vector.h>

#include "rpc/testing/mode_model.h"
#include "rpc/testing/test_setting.h"

namespace rpc {

// A call of a worker to a server.
struct Call {
  enum What { PULL, PUSH, REST } what;
  uint rank;
  uint shard;
  uint session;     // of the rank, from 0: grows when the connection breaks
  uint64_t number;  // PUSH: the step; REST: how often this worker has rested before
  kj::Array<SliceId> slices;
  kj::Array<kj::Array<float>> gradients;  // PUSH: of each slice
  uint index;                             // of all calls of the schedule
  bool waited = false;
};

struct Answered {
  uint64_t version;
  kj::ArrayPtr<const float> values;
};

// The servers of a schedule: Shards, or more of the real thing around them.
class Servers {
public:
  virtual ~Servers() noexcept(false) = default;

  // A call of the rank's newest session has arrived. It lives until the schedule's end; `counts`:
  // whether a push is one of a step that was not pushed before, of each slice.
  virtual void deliver(Call& call, kj::ArrayPtr<const bool> counts) = 0;
  // One of a former session has arrived. Returns whether it counts all the same.
  virtual bool deliverLate(Call& call, kj::ArrayPtr<const bool> counts) = 0;
  // The rank's connections broke: what was not delivered yet is late from here on.
  virtual void reconnect(uint rank) = 0;
  // Whether a delivered call is answered, or may be. Asked after every event.
  virtual bool isAnswered(const Call& call) = 0;
  // Of an answered PULL or PUSH of the newest session, once for each of its slices: the values of
  // the answer, valid until the next event.
  virtual Answered take(Call& call, uint entry) = 0;
  // Compares what can be seen from outside with the models, one a slice; after every event.
  virtual void compare(kj::ArrayPtr<const kj::Own<SliceModel>> models) = 0;
};

// What a schedule was about, for the tests that want to know that anything happened.
struct Happened {
  uint64_t pushed = 0;
  uint64_t dropped = 0;
  uint64_t waited = 0;   // calls that were not answered at once
  uint64_t breaks = 0;   // of connections
  uint64_t repeats = 0;  // pushes of a slice that had come before
  uint64_t stale = 0;    // pushes that were applied to values newer than those they were made of
  uint64_t reads = 0;    // that were held against the bound on staleness

  void add(const Happened& other);
};

// Runs the schedule of this seed: what workers do; when messages come and connections break is
// drawn from `delays`. Throws where servers and model differ, at a deadlock, and where
// the trace of who pushed, read and rested breaks what the mode promises.
Happened runSchedule(const Setting& setting, Servers& servers, uint64_t seed, uint64_t delays);

}  // namespace rpc
