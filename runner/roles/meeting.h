// runner/roles/meeting.h: lets all workers meet at one point of the run, and adds up their
// contributions.
#pragma once

#include <kj/array.h>
#include <kj/async.h>
#include <kj/vector.h>

#include "nn/confusion.h"
#include "nn/program.h"
#include "runner/logs/job.capnp.h"

namespace runner {

using kj::uint;

// One worker's contribution to a meeting.
struct Contribution {
  nn::BatchResult sums;
  kj::Array<float> statistics;  // its moving statistics
  // Of the last validation: see Session.meet() in job.capnp.
  kj::Array<nn::ConfusionCell> confusion = nullptr;
};

// The result of a meeting for one worker.
struct MeetingOutcome {
  nn::BatchResult sums;         // the sum of all contributions
  kj::Array<float> statistics;  // their mean, weighted by images
  bool stopsNext = false;       // see `stopNext` in job.capnp
  // The worker validates part `part` of `parts` next.
  uint part = 0;
  uint parts = 1;
  bool again = false;  // all validate again, or make more steps before the epoch ends
};

// The meetings of a job, one after the other. Only one meeting is open at a time, because no worker
// leaves before all have arrived. For one thread.
class Meeting {
public:
  // All of `workers` ranks are members at first.
  explicit Meeting(uint workers): places(kj::heapArray<Place>(workers)), members(workers) {}

  // Brings the contribution of worker `rank`, a member. The promise resolves at end(). Throws if
  // the others meet at another point of the run or bring another number of statistics, or if the
  // worker has already joined this meeting.
  kj::Promise<void> join(
      uint rank, uint epoch, uint64_t step, MeetingPoint point, Contribution contribution);
  // Whether all members have arrived.
  bool isFull() const { return full; }
  // The point at which the workers meet, or met last.
  MeetingPoint point() const { return place; }
  uint presentEpoch() const { return epoch; }
  uint64_t presentStep() const { return step; }
  // Returns the result of the last full meeting for worker `rank`. The contributions are added in
  // the order of ranks, in whatever order the workers arrived.
  MeetingOutcome outcomeOf(uint rank) const;
  // Whether all workers meet at this point again.
  bool repeats() const { return result.again; }
  // Returns the sum of the confusion matrices in all contributions. It is not in outcomeOf(),
  // because no worker needs it. Valid until the next meeting.
  kj::ArrayPtr<const nn::ConfusionCell> confusion() const { return cells; }
  // Tells the workers to stop before their next step. Call it before end().
  void stopNext() { result.stopsNext = true; }
  // Tells the workers to make more steps and to meet again. Call it before end().
  void repeat() { result.again = true; }
  // Lets all workers continue. Call it when the meeting is full.
  void end();

  // Worker `rank` is no longer a member. Its contribution to a meeting that is not full does not
  // count, unless it is a finished part of the validation and the others meet there, too. Returns
  // whether the meeting became full because the worker has left.
  bool leave(uint rank);
  // Worker `rank` is a member from the next meeting on.
  void enter(uint rank);

private:
  struct Place {
    bool isMember = true;
    bool validates = true;  // has a part of the validation
    kj::Maybe<Contribution> contribution{};
    kj::Maybe<kj::Own<kj::PromiseFulfiller<void>>> waiting{};
  };

  bool closeIfFull();
  void dropContributions();
  void add();
  // Returns how many ranks below `rank` have a part of the validation.
  uint partsBelow(uint rank) const;

  uint epoch = 0;
  uint64_t step = 0;
  MeetingPoint place = MeetingPoint::TRAINED;
  size_t statistics = 0;    // how many each worker contributes
  kj::Array<Place> places;  // by rank
  uint members;
  uint present = 0;  // members that have arrived
  bool full = false;
  MeetingOutcome result;  // without the part of a worker
  kj::Array<nn::ConfusionCell> cells;
};

}  // namespace runner
