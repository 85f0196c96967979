// runner/roles/joining_worker.h: a worker that joins its job before it has made its program,
// batches and store.
#pragma once

#include "runner/experiment/model_facts.h"
#include "runner/roles/io_thread.h"

namespace runner {

// The io thread joins at once, while the compute thread still makes the worker's parts. All methods
// are for the compute thread.
struct JoiningWorker {
  // Both arguments must outlive it.
  JoiningWorker(const LoadedExperiment& loaded, const RoleOptions& options);

  // Sets the level of instructions of this process, before its program is made. Asks the
  // coordinator unless the file names a level that this machine has.
  void chooseInstructionSet(const LoadedExperiment& loaded);
  // Fetches the saved state of this worker if the run continues from a checkpoint. Returns the
  // number of its first step. Throws if the part lacks this number.
  uint64_t fetchSaved();

  const ModelFacts facts;
  LiveProgress progress;
  kj::Array<kj::byte> saved;  // empty: the run begins, or the worker enters
  bool enters = false;        // the job runs without this worker until it enters
  kj::Own<IoThread> ioThread;
};

}  // namespace runner
