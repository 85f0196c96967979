// runner/logs/run_record.h: reads the events in a run's folder. Tables, reports and sweeps are made
// from them.
#pragma once

#include <kj/array.h>
#include <kj/string.h>

#include "runner/logs/job.capnp.h"
#include "runner/logs/verb_times.h"
#include "runner/system/machine.h"

namespace runner {

using kj::uint;

// The share of the images of a validation whose label is among the k largest logits.
struct TopKFigure {
  uint k;
  double accuracy;
};

// One epoch over all workers.
struct EpochRecord {
  uint epoch = 0;            // from 1
  uint64_t step = 0;         // of the slowest worker, at the end of the epoch
  uint64_t globalStep = 0;   // updates, the largest number that a worker saw
  uint workers = 0;          // how many workers have reported the epoch
  uint64_t images = 0;       // that all workers trained on
  double trainLoss = 0;      // mean over images
  double trainAccuracy = 0;  // mean over images
  double epoch_s = 0;        // mean over workers
  double images_per_s = 0;   // of the whole job: the sum over workers
  VerbTimes verbs;           // means over workers, over the whole epoch
  double pushed_bytes = 0;   // by all workers, since the run began
  double pulled_bytes = 0;   // by all workers, since the run began
  double learningRate = 0;   // at the end of the epoch
  // The common result of all workers, or the mean of their results if each validates all records.
  // Null until the epoch is validated.
  kj::Maybe<double> validationLoss;
  kj::Maybe<double> validationAccuracy;
  kj::Maybe<TopKFigure> topK;  // of the validation. Null without log.top_k
  uint validationViews = 0;    // per image; 0: not validated, or not known

  // Returns the accuracy of `topK`. Null if it is of another k.
  kj::Maybe<double> topKAccuracy(uint k) const {
    KJ_IF_MAYBE(figure, topK) {
      if (figure->k == k) return figure->accuracy;
    }
    return nullptr;
  }
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
  double accuracy;  // of the epoch so far
  double batchLoss;
  double batchAccuracy;
  uint workers = 1;  // how many the job had then
};

// The traffic between a worker and the holder of a shard since the run began, as in job.capnp's
// Traffic.
struct LinkRecord {
  uint worker = 0;
  uint server = 0;       // the server, or the worker that holds the shard
  kj::String transport;  // empty: the two exchange nothing
  double calls = 0;
  double pushed_bytes = 0;
  double pulled_bytes = 0;
  double roundTrips_s = 0;  // the sum over all calls
  double roundTripMax_s = 0;
  double waitingMax_bytes = 0;
  uint64_t reconnects = 0;
};

// How long a worker's compute thread has waited for answers since the run began.
struct WaitRecord {
  uint worker = 0;
  uint64_t steps = 0;
  double pull_s = 0;
};

// The counts of a server since the run began, as in job.capnp's Pushes.
struct CountedRecord {
  uint server = 0;
  double pushed = 0;
  double dropped = 0;
  kj::Array<double> staleness;  // pushes by the number of updates that they missed
};

// All facts about a run. Values from events that the run has not written are 0 or empty.
struct RunRecord {
  kj::String folder;
  kj::String name;

  struct Best {
    uint epoch;
    double accuracy;
  };

  // INTERRUPTED: by Ctrl-C or another signal to its launcher. STOPPED: by its sweep. RUNNING:
  // another process holds its folder; readRunRecord() does not check this. UNFINISHED: it runs now,
  // or was killed.
  enum State { FINISHED, FAILED, INTERRUPTED, STOPPED, RUNNING, UNFINISHED } state = UNFINISHED;
  // FAILED, INTERRUPTED, STOPPED: why. RUNNING: which process. UNFINISHED: the possible causes.
  kj::String reason;
  kj::String damage;  // of readRecordToResume(): see eachEventUntilDamage()
  kj::String rule;    // of STOPPED: the rule of sweep.stop
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
  // A change of the numbers of workers or servers at the end of epoch `epoch`, by --resume. The
  // members above hold the newest numbers.
  struct Resize {
    uint epoch;
    uint workersBefore, workers;
    uint serversBefore, servers;
    kj::String goesOnFrom;  // the name of the folder of the run with the earlier numbers
    kj::Array<kj::String> facts;
  };
  kj::Array<Resize> resizes;
  // The epoch whose weights are in best.safetensors, and the accuracy of its validation. Null
  // without checkpoint.keep_best.
  kj::Maybe<Best> best;
  kj::Maybe<Best> averaged;          // last epoch, accuracy of ema.safetensors. Null without it
  kj::Maybe<kj::String> endedEarly;  // why the run ended before its last epoch, by train.early_stop
  uint64_t unsaved = 0;    // checkpoints, or files of the best weights, that could not be written
  kj::String unsavedText;  // the last one, and why
  kj::Array<kj::String> leftOut;  // what the import of its data set left out, one sentence each

  // In ascending order. Of a run that has not finished, only the epochs that all workers have done.
  kj::Array<EpochRecord> epochRecords;
  kj::Array<SpeedRecord> speeds;
  // The counts of each role at the end of its last epoch, by role.
  kj::Array<LinkRecord> links;
  kj::Array<WaitRecord> waits;
  kj::Array<CountedRecord> counted;
};

// Returns "3 workers in place of 2", for messages.
kj::String numbersText(const RunRecord::Resize& resize);
// Returns which state was added up, copied and lost, as the end of a sentence: ": … ; …". Empty if
// there was none.
kj::String factsText(const RunRecord::Resize& resize);

// Reads the events of the run in `folder`. Skips a last line that is cut off, because the run was
// killed while it wrote it. Throws, and says what to do, if the folder has no events or a line is
// not an event.
RunRecord readRunRecord(kj::StringPtr folder);
// Does the same for a run that may be resumed, but reads only up to the first line that is not an
// event. The run can continue without that line if its newest checkpoint does not need it. The
// record has no digest if the first line is not an event, or if the run ended before it had begun.
RunRecord readRecordToResume(kj::StringPtr folder);
// Returns a sentence about a run that continues or begins again because its events are damaged.
// Null if they are not, or if the run had ended before the damage.
kj::Maybe<kj::String> damageText(const RunRecord& record);

}  // namespace runner
