// runner/roles/worker_parts.h: the parts of a worker according to its experiment: data, program,
// store.
#pragma once

#include "io/datasets/datasets.h"
#include "nn/program.h"
#include "rpc/store/remote_store.h"
#include "runner/roles/batches.h"
#include "runner/roles/io_thread.h"
#include "runner/roles/live_progress.h"
#include "runner/roles/store_updater.h"
#include "runner/roles/trace_file.h"

namespace runner {

// The parts of one worker, in the order in which they refer to each other.
struct WorkerParts {
  // Opens the data set, calls `prepare`, which returns the number of the first step, and makes the
  // program, which may take seconds. Records in `progress` when it waits for files and devices. All
  // arguments except these two must outlive it. Throws if the data or the device cannot be used.
  WorkerParts(const LoadedExperiment& loaded, const RoleOptions& options, const ModelFacts& facts,
      LiveProgress& progress, kj::FunctionParam<uint64_t()> prepare);
  KJ_DISALLOW_COPY(WorkerParts);

  // Lets `ioThread` connect the store to the servers, and serve the shard that this worker holds,
  // if it holds one. Waits until every role has joined. `since`: see rpc::Servers. This object
  // must outlive the thread.
  void connect(IoThread& ioThread, uint64_t since);

  const Experiment& experiment;
  const ModelFacts& facts;
  const uint rank;
  const rpc::Placement placement;
  kj::Maybe<kj::Own<rpc::Trace>> trace;  // the recordings of both threads. Null without --trace
  StoreUpdater updater;
  kj::Maybe<kj::Own<rpc::Updater>> ownShardUpdater;  // of the shard that this worker holds, if any
  kj::Own<io::Dataset> dataset;
  kj::Maybe<kj::Own<rpc::SharedMemory>> memory;  // holds the gradients, if servers may read them
  const kj::Maybe<nn::ValueRules> updates;       // for a program that can update the parameters
  kj::Own<nn::Program> program;
  kj::Own<Batches> batches;
  kj::Maybe<nn::Trainer&> trainer;      // the program, if it updates the parameters itself
  kj::Own<rpc::KvStore> store;          // does nothing if there is a trainer
  kj::Maybe<rpc::RemoteStore&> remote;  // the store, if it has servers

private:
  kj::Own<nn::Program> newProgram() const;
  kj::Own<rpc::KvStore> newStore();
  rpc::ServedShard newShard(kj::UnixEventPort& port);
};

}  // namespace runner
