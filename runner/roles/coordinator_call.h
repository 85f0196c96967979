// runner/roles/coordinator_call.h: how a role reaches its coordinator.
#pragma once

#include <kj/async-io.h>

#include "rpc/wire/proof.h"
#include "rpc/wire/running_time.h"
#include "runner/experiment/experiment.h"
#include "runner/roles/role_options.h"

namespace runner {

// An open connection to the coordinator.
struct CoordinatorCall {
  kj::Own<kj::AsyncIoStream> stream;  // both ends have opened it: see rpc/wire/opening.h
  kj::String address;
  rpc::Secret secret;  // the job's: options.secret, or the one that the coordinator has drawn
};

// Connects to options.coordinator, or to the address in the folder (see address_file.h), and proves
// the identity `own`. A role without a launcher may be started before its coordinator. It says once
// on stderr that it waits, and tries again until `running` has reached `limit`. Rejects with
// DISCONNECTED if the coordinator cannot be reached. Rejects, and says what to do, if something
// else answers, if the secrets differ, or if only one end uses TLS. Has no time-out for an answer.
// All arguments must outlive the promise.
kj::Promise<CoordinatorCall> callCoordinator(kj::AsyncIoContext& io, const RoleOptions& options,
    rpc::Identity own, rpc::RunningTime& running, kj::Duration limit);

// Returns the exception for a coordinator that has not answered within `limit`, which is
// cluster.start_timeout_s.
kj::Exception notAnswered(const RoleOptions& options, kj::Duration limit);

// Returns loaded.settings for Coordinator.join(), or nothing if they are too long for a message.
kj::StringPtr settingsToSend(const LoadedExperiment& loaded);

// Returns why a role could not join after something at `address` had accepted its connection. A
// reason from the coordinator is returned unchanged.
kj::Exception whyNotJoined(kj::Exception e, kj::StringPtr address);

}  // namespace runner
