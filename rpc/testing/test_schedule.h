// rpc/testing/test_schedule.h: runs random schedules of workers and servers under a virtual clock,
// and compares the servers with the model after every event.
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
  uint session;     // of the rank, from 0: increases when the connection breaks
  uint64_t number;  // PUSH: the step; REST: how often this worker has rested before
  kj::Array<SliceId> slices;
  kj::Array<kj::Array<float>> gradients;  // PUSH: per slice
  uint index;                             // among all calls of the schedule
  bool waited = false;
};

struct Answered {
  uint64_t version;
  kj::ArrayPtr<const float> values;
};

// The servers of a schedule: Shards alone, or with a part of the real server around them.
class Servers {
public:
  virtual ~Servers() noexcept(false) = default;

  // A call of the rank's newest session has arrived. It lives until the end of the schedule.
  // `counts` says per slice whether the push is of a step that was not pushed before.
  virtual void deliver(Call& call, kj::ArrayPtr<const bool> counts) = 0;
  // A call of a former session has arrived. Returns whether it counts nevertheless.
  virtual bool deliverLate(Call& call, kj::ArrayPtr<const bool> counts) = 0;
  // The rank's connections broke. Calls that were not delivered yet belong to a former session now.
  virtual void reconnect(uint rank) = 0;
  // Whether a delivered call is answered, or may be answered. Called after every event.
  virtual bool isAnswered(const Call& call) = 0;
  // Returns the values that answer a PULL or PUSH of the newest session, valid until the next
  // event. Called once per slice of the call.
  virtual Answered take(Call& call, uint entry) = 0;
  // Compares what is visible from outside with the models, one per slice. Called after every event.
  virtual void compare(kj::ArrayPtr<const kj::Own<SliceModel>> models) = 0;
};

// Counts what happened in a schedule, for tests that check that something did.
struct Happened {
  uint64_t pushed = 0;
  uint64_t dropped = 0;
  uint64_t waited = 0;   // calls that were not answered at once
  uint64_t breaks = 0;   // of connections
  uint64_t repeats = 0;  // pushes of a slice that had come before
  uint64_t stale = 0;    // pushes that were applied to newer values than they were computed on
  uint64_t reads = 0;    // reads that were checked against the bound on staleness

  void add(const Happened& other);
};

// Runs the schedule of this seed, which decides what workers do. `delays` decides when messages
// arrive and connections break. Throws if servers and model differ, at a deadlock, and if the
// PushTrace shows that the mode broke a promise.
Happened runSchedule(const Setting& setting, Servers& servers, uint64_t seed, uint64_t delays);

}  // namespace rpc
