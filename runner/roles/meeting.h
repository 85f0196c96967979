// runner/roles/meeting.h: lets all workers meet at one point of the run, and adds up what they
// bring.
#pragma once

#include <kj/array.h>
#include <kj/async.h>
#include <kj/vector.h>

#include "nn/program.h"
#include "runner/logs/job.capnp.h"

namespace runner {

using kj::uint;

// What one worker brings to a meeting: its sums, and its moving statistics. All workers get the sum
// of the sums, and the mean of the statistics weighted by images.
struct Contribution {
  nn::BatchResult sums;
  kj::Array<float> statistics;
  bool stopsNext = false;  // of the outcome: see `stopNext` in job.capnp
};

// The meetings of a job, one after the other. Only one meeting is open at a time, because no worker
// leaves before all are there. For one thread.
class Meeting {
public:
  explicit Meeting(uint workers): contributions(kj::heapArray<kj::Maybe<Contribution>>(workers)) {}

  // Brings the contribution of worker `rank`. The promise resolves at end(). Throws if the others
  // meet at another point of the run or bring another number of statistics, or if the worker is
  // there already.
  kj::Promise<void> join(
      uint rank, uint epoch, uint64_t step, MeetingPoint point, Contribution contribution);
  // Whether all workers are there.
  bool isFull() const { return waiting.size() == contributions.size(); }
  // The point at which the workers meet, or met last.
  MeetingPoint point() const { return place; }
  // What all workers get, valid until the next meeting is full. It is added in rank order, whatever
  // order the workers arrived in.
  const Contribution& outcome() const { return result; }
  // Tells the workers to stop before their next step. Call it before end().
  void stopNext() { result.stopsNext = true; }
  // Lets all workers go on. Call when the meeting is full.
  void end();

private:
  Contribution add() const;

  uint epoch = 0;
  uint64_t step = 0;
  MeetingPoint place = MeetingPoint::TRAINED;
  size_t statistics = 0;                             // how many each worker brings
  kj::Array<kj::Maybe<Contribution>> contributions;  // by rank
  kj::Vector<kj::Own<kj::PromiseFulfiller<void>>> waiting;
  Contribution result;
};

}  // namespace runner
