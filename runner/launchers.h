// runner/launchers.h: who starts the roles of a run, watches them, and takes them down.
#pragma once

#include <kj/array.h>
#include <kj/async-io.h>
#include <kj/string.h>

#include "runner/experiment.h"
#include "runner/run_folder.h"
#include "runner/run_view.h"

namespace runner {

// How a run ended: exactly one of the three.
struct Outcome {
  bool interrupted = false;       // by Ctrl-C or SIGTERM
  kj::Maybe<kj::String> failure;  // one sentence: role, cause, way out
  kj::Maybe<kj::String> weightsSha256;
};

// Exit code of a role that failed because another one did.
constexpr int LOST_A_PEER_EXIT = 75;

// Starts every role of `loaded` by the launcher that it names, hands the coordinator's events to
// `view`, and returns when all have ended or the run has failed. Processes are gone then; threads
// (inline) of a failed run are not, so the caller must end the process. `io`'s port must capture
// SIGINT, SIGTERM and child exits.
Outcome launch(
    const LoadedExperiment& loaded, const RunFolder& folder, RunView& view, kj::AsyncIoContext& io);

}  // namespace runner
