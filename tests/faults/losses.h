// tests/faults/losses.h: small jobs that lose roles at random moments, and the time that each lost
// role costs.
#pragma once

#include <kj/vector.h>

#include <random>

#include "tests/run.h"

namespace tests {

constexpr kj::StringPtr SMALL_JOB = "tests/faults/losses.toml"_kj;

// A variant of that job, and the results of an undisturbed run of it.
struct SmallJob {
  kj::ArrayPtr<const kj::StringPtr> settings;  // of --set
  kj::String weightsSha256;
  size_t logLines;
  double seconds;

  // Returns how a run that has ended like this differs from the undisturbed one. Empty if it does
  // not.
  kj::String difference(const Ended& ended, kj::StringPtr folder) const;
};

// Trains the variants once. One of three encodes its gradients, and keeps the remainders.
kj::Array<SmallJob> trainSmallJobs();

// Returns the value of the environment variable RUNS, or `otherwise` if it is not set.
uint runsOr(uint otherwise);

// Returns `count` random moments within `seconds`, in ascending order.
kj::Array<double> momentsWithin(double seconds, uint count, std::mt19937& dice);

// The part of a run during which a role is killed.
enum LossPhase { START_UP, TRAINING, CHECKPOINT, VALIDATION, END, LOSS_PHASES };

// The cost of one lost role, in seconds.
struct LossCost {
  double detect_s;   // until the loss was noticed
  double restart_s;  // from then until the new coordinator had the checkpoint
  double replay_s;   // from then until the job had passed its former step

  double total_s() const { return detect_s + restart_s + replay_s; }
};

// The lost roles of several runs.
struct LossFigures {
  uint losses[LOSS_PHASES] = {};
  uint tooLate = 0;            // no role ran at that moment
  kj::Vector<LossCost> costs;  // of each lost role from which the job had recovered before the next
                               // one and before the end

  // Returns the number of lost roles.
  uint count() const;
  void add(const LossFigures& other);
  // Prints counts, medians and the largest times to stdout.
  void print() const;
};

// Watches one run, and measures the cost of its lost roles. `folder` and `figures` must outlive it.
class LossWatch {
public:
  LossWatch(kj::StringPtr folder, LossFigures& figures): folder(folder), figures(figures) {}

  // A role of the run is lost now.
  void lose();
  // The loss is noticed now. look() calls this if the run itself starts its roles again.
  void notice();
  // Reads what the run has written since the last call. Call this every few milliseconds.
  void look(Command& command);
  // Calls look() for `seconds`, or until the run has ended. Returns false if it has ended.
  bool lookFor(Command& command, double seconds);
  // Returns how many losses this run has noticed.
  size_t noticed() const { return notices; }

private:
  enum Waiting { FOR_NOTHING, FOR_NOTICE, FOR_CHECKPOINT, FOR_STEP };

  kj::String events() const;

  const kj::StringPtr folder;
  LossFigures& figures;
  Waiting waiting = FOR_NOTHING;
  double lost_s = 0, noticed_s = 0, restarted_s = 0;  // when, since 1970
  size_t notices = 0;                                 // lines of this command about lost roles
  uint64_t step = 0, stepLost = 0;  // of worker 0: the latest one, and the one at the loss

  static double now_s();
};

}  // namespace tests
