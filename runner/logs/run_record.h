// runner/logs/run_record.h: what a run left in its folder, read back: what tables, reports and
// sweeps are made from.
#pragma once

#include <kj/array.h>
#include <kj/string.h>

#include "runner/logs/job.capnp.h"
#include "runner/logs/verb_times.h"
#include "runner/system/machine.h"

namespace runner {

using kj::uint;

// One epoch over all workers. Sums are over workers, means are weighted by images.
struct EpochRecord {
  uint epoch = 0;            // from 1
  uint64_t step = 0;         // of the slowest worker, at its end
  uint64_t globalStep = 0;   // updates, as the worker that knows most saw them
  uint workers = 0;          // that have reported it
  uint64_t images = 0;       // trained on, by all workers
  double trainLoss = 0;      // mean
  double trainAccuracy = 0;  // mean
  double epoch_s = 0;        // mean over workers
  double images_per_s = 0;   // of the whole job: the sum of each worker's
  VerbTimes verbs;           // means over workers, of the whole epoch
  double pushed_bytes = 0;   // by all workers, since the run began
  double pulled_bytes = 0;   // likewise
  double learningRate = 0;   // at its end
  // What all workers found, or the mean of what each found; null until it was validated.
  kj::Maybe<double> validationLoss;
  kj::Maybe<double> validationAccuracy;
  uint validationViews = 0;  // of each image; 0: it was not validated, or nobody said
};

// One speed line.
struct SpeedRecord {
  uint worker;
  uint epoch;
  uint64_t step;
  uint64_t globalStep;
  double training_s;
  double images_per_s;
  double loss;      // of the epoch so far
  double accuracy;  // likewise
  double batchLoss;
  double batchAccuracy;
};

// What went between a worker and a shard's holder since the run began, as job.capnp's Traffic
// tells.
struct LinkRecord {
  uint worker = 0;
  uint server = 0;       // or, where workers hold the shards, that worker
  kj::String transport;  // empty: nothing goes between the two
  double calls = 0;
  double pushed_bytes = 0;
  double pulled_bytes = 0;
  double roundTrips_s = 0;  // their sum
  double roundTripMax_s = 0;
  double waitingMax_bytes = 0;
  uint64_t reconnects = 0;
};

// How long a worker's compute thread waited for answers since the run began.
struct WaitRecord {
  uint worker = 0;
  uint64_t steps = 0;
  double pull_s = 0;
};

// What a server has counted since the run began, as job.capnp's Pushes tell.
struct CountedRecord {
  uint server = 0;
  double pushed = 0;
  double dropped = 0;
  kj::Array<double> staleness;  // pushes, by the updates that they missed
};

struct RunRecord {
  kj::String folder;
  kj::String name;

  // INTERRUPTED: by Ctrl-C or another signal to its launcher. RUNNING: another process holds its
  // folder, which readRunRecord() does not look at. UNFINISHED: it runs now, or was killed.
  enum State { FINISHED, FAILED, INTERRUPTED, STOPPED, RUNNING, UNFINISHED } state = UNFINISHED;
  // Of FAILED, INTERRUPTED and STOPPED; of RUNNING the process; of UNFINISHED what may be.
  kj::String reason;
  kj::String rule;  // of STOPPED: the sweep.stop that decided it
  kj::String digest;
  kj::String weightsSha256;  // of FINISHED
  double run_s = 0;          // of FINISHED

  Machine machine;
  kj::String instructionSet;
  kj::String version;
  uint workers = 0;
  uint servers = 0;
  uint epochs = 0;
  uint64_t parameters = 0;
  uint64_t steps = 0;
  uint64_t globalBatchSize = 0;
  kj::Array<kj::String> leftOut;  // by the import of its data set, a sentence each

  kj::Array<EpochRecord> epochRecords;  // in rising order
  kj::Array<SpeedRecord> speeds;
  // As the last epoch of each role left them, by role.
  kj::Array<LinkRecord> links;
  kj::Array<WaitRecord> waits;
  kj::Array<CountedRecord> counted;
};

// Reads the events of the run in `folder`. A last line that is torn is left out: the run was
// killed. Throws, with the way out, if the folder has no events or a line of them is no event.
RunRecord readRunRecord(kj::StringPtr folder);

}  // namespace runner
