// runner/roles/job_saver.h: stops the workers of a job at a common step, gathers the state of all
// roles, and writes checkpoints.
#pragma once

#include <kj/async.h>
#include <kj/function.h>
#include <kj/timer.h>
#include <kj/vector.h>

#include "nn/network/graph.h"
#include "rpc/wait_list.h"
#include "runner/checkpoints/checkpoints.h"
#include "runner/experiment/experiment.h"
#include "runner/logs/job.capnp.h"
#include "runner/logs/run_folder.h"
#include "runner/roles/one_thread.h"
#include "runner/roles/part_transfer.h"

namespace runner {

// Runs on the coordinator's thread. A second thread writes the files while the job continues.
class JobSaver {
public:
  // A checkpoint that is on disk.
  struct Saved {
    uint64_t bytes;
    double seconds;        // since all workers had stopped
    double stood_seconds;  // how long they were stopped
  };
  // How an attempt at `point` ended: with a checkpoint, or with the reason why it could not be
  // written.
  using Outcome = kj::Function<void(
      const SavedPoint& point, kj::Maybe<const Saved&> saved, kj::StringPtr reason)>;

  // All arguments must outlive it. Calls `outcome` for every attempt. One that fails changes
  // nothing: the older checkpoints stay, and the next attempt may succeed.
  JobSaver(const Experiment& experiment, kj::StringPtr digest, const nn::Graph& graph,
      const RunFolder& folder, kj::Timer& timer, Outcome outcome,
      kj::Maybe<const OneThread&> oneThread = nullptr);
  // Waits until a checkpoint that is being written is on disk.
  ~JobSaver() noexcept(false);

  // All workers have met at the end of an epoch. The next one begins without a stop: see StopPoint.
  // A stop that they have not reached moves to the beginning of the next epoch.
  void endEpoch();

  // Whether the workers were asked to stop at a step that they have not reached yet.
  bool hasAsked() const { return asked != nullptr; }
  // Whether a checkpoint is being requested, gathered or written.
  bool isBusy() const { return asked != nullptr || gathering != nullptr; }
  // Whether the workers are to be saved before the first step of the next epoch: this epoch was too
  // short, or a worker waits to join.
  bool isForNextEpoch() const { return nextEpoch; }
  // Returns isForNextEpoch(), and resets it.
  bool takeNextEpoch();
  // Makes the workers stop at the beginning of the next epoch.
  void stopAtNextEpoch() { nextEpoch = true; }

  // Asks the workers to stop soon. At least one of them has made `furthest` steps. Resolves when
  // they have agreed to stop, or when the attempt is given up: the epoch is too short, a worker has
  // not made its first step, or a worker has passed every step that was asked for. A worker that is
  // lost meanwhile (its calls reject with DISCONNECTED) need not agree.
  kj::Promise<void> ask(kj::Array<Member::Client> workers, uint64_t furthest);

  // All workers, `ranks`, have stopped at `point`. Resolves when they may continue: when `shards`,
  // the roles with shards, have copied their shards.
  kj::Promise<void> gather(
      SavedPoint point, kj::Array<uint> ranks, kj::Array<Member::Client> shards);
  // All workers have stopped at `step`, but there will be no checkpoint.
  void giveUp(uint64_t step);
  // Takes a piece of a part: see Session.savePart() in job.capnp. Throws if it is not the next one.
  void take(PartName name, Session::SavePartParams::Reader piece);
  // Returns the part of worker `rank`. Null unless it is complete, and its checkpoint is being
  // gathered or written.
  kj::Maybe<kj::ArrayPtr<const kj::byte>> partOf(uint rank) const;
  // Worker `rank` was lost. Gives up the checkpoints that still lack its part. These may be the one
  // that is being gathered and the one that waits for its turn. Returns whether there was any.
  bool abandon(uint rank);
  // Whether the parts of a checkpoint of `step` are expected or being written.
  bool gathers(uint64_t step) const;
  // Resolves when no checkpoint is gathered or written.
  kj::Promise<void> whenIdle();
  // Resolves when the checkpoint that is being written is on disk, or could not be written.
  // Resolves immediately if there is none, or if a checkpoint still lacks parts.
  kj::Promise<void> whenWritten();

private:
  struct Gathering {
    SavedPoint point;
    kj::TimePoint begun;
    kj::Duration stood = 0 * kj::NANOSECONDS;
    kj::Vector<IncomingPart> parts;
  };

  kj::Promise<void> ask(kj::Array<Member::Client> workers, uint64_t furthest, uint attempt);
  // The workers have reached `step`, where they may have been asked to stop.
  void forgetAskedUpTo(uint64_t step);
  // Whether all parts of the checkpoint that is gathered have arrived.
  bool isWhole() const;
  void writeIfWhole();
  void end();
  kj::Array<CheckpointFile> filesOf(const Gathering& gathering);
  kj::Vector<kj::ArrayPtr<const kj::byte>> parametersIn(const Gathering& gathering) const;

  const Experiment& experiment;
  kj::StringPtr digest;
  const nn::Graph& graph;
  const RunFolder& folder;
  kj::Timer& timer;
  const kj::Maybe<const OneThread&> oneThread;
  Outcome outcome;
  // The step at which the workers were asked to stop. Null again once they have stopped there or
  // have not agreed. In between, they may be saved at an earlier step.
  kj::Maybe<uint64_t> asked;
  bool isAsking = false;  // ask() has not resolved
  bool nextEpoch = false;
  kj::Maybe<Gathering> gathering;
  // The step of the checkpoint that will be gathered when the one before it is on disk.
  kj::Maybe<uint64_t> next;
  kj::Maybe<uint64_t> abandoned;  // the step of the last checkpoint that will not be written
  GrowingFiles logs;              // of the run's folder
  // The headers of the files of the checkpoint that is being written.
  kj::Vector<kj::Array<kj::byte>> heads;
  kj::Array<float> meanStatistics;
  rpc::WaitList waiting;  // for whenIdle()
  kj::Promise<void> writing = nullptr;
};

}  // namespace runner
