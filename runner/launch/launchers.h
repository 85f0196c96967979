// runner/launch/launchers.h: who starts the roles of a run, watches them, and takes them down.
#pragma once

#include <kj/array.h>
#include <kj/async-io.h>
#include <kj/string.h>

#include "rpc/trace.h"
#include "runner/experiment/experiment.h"
#include "runner/launch/run_view.h"
#include "runner/logs/run_ending.h"
#include "runner/logs/run_folder.h"

namespace runner {

// Exit code of a role that failed because another one did.
constexpr int LOST_A_PEER_EXIT = 75;

// Starts every role of `loaded` by the launcher that it names, hands the coordinator's events to
// `view`, and resolves when all have ended or the run has failed. The outcome is what the run's
// last event says: what goes wrong after that is told to `view` as a warning. Processes are gone
// then, and when the promise is dropped; threads (inline) of a failed or dropped run are not, so
// the caller must end the process, but they no longer write to the run's logs. All arguments must
// outlive the promise; `io`'s port must capture child exits. Several runs may go side by side on
// one event loop. With `trace`, servers and workers leave what they recorded of these steps in the
// folder, when all went well: see joinTraces().
kj::Promise<Outcome> launch(const LoadedExperiment& loaded, const RunFolder& folder, RunView& view,
    kj::AsyncIoContext& io, kj::Maybe<rpc::TraceSteps> trace = nullptr);

}  // namespace runner
