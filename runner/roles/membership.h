// runner/roles/membership.h: a role's side of the job: it joins, keeps alive, and hears the end.
#pragma once

#include <kj/async-io.h>
#include <kj/function.h>
#include <kj/memory.h>

#include "rpc/wire/listener.h"
#include "rpc/wire/peer.h"
#include "runner/experiment/experiment.h"
#include "runner/logs/job.capnp.h"
#include "runner/roles/role_options.h"

namespace runner {

// Lives on an event loop, and as long as the role.
class Membership {
public:
  // Fills in what a server has counted; the builder lives until the promise resolves.
  using CountPushes = kj::Function<kj::Promise<void>(Pushes::Builder)>;

  // Connects to options.coordinator and joins; a role without a launcher says so on stderr.
  // `address` is where this role listens, if it holds a shard. `progress` fills in each heartbeat;
  // `count`, a server's alone, answers the coordinator. The promise resolves once seated, and
  // rejects if what listens there gives no answer for cluster.start_timeout_s. All arguments must
  // outlive the membership.
  static kj::Promise<kj::Own<Membership>> join(kj::AsyncIoContext& io,
      const LoadedExperiment& loaded, const RoleOptions& options,
      kj::Maybe<const rpc::ServerAddress&> address, rpc::MessageLimits limits,
      kj::Function<void(RoleProgress::Builder)> progress, kj::Maybe<CountPushes> count = nullptr);

  virtual ~Membership() noexcept(false) = default;

  virtual Session::Client session() = 0;
  // Resolves when the coordinator says that the job is over; rejects (DISCONNECTED) when the
  // coordinator is lost, or, without a launcher that watches it, silent for
  // cluster.silence_timeout_s. Call once.
  virtual kj::Promise<void> ended() = 0;
  // Tells the coordinator why this role ends, which ends the job. Resolves when the coordinator has
  // taken that, and anyway after a second; at once if `failure` is that the coordinator is lost.
  // The result is what the user is to be told: the reason of `failure`, with the coordinator named
  // first if `failure` is that another role was lost and the coordinator is gone or does not answer
  // either.
  virtual kj::Promise<kj::String> tellFailure(const kj::Exception& failure) = 0;
  // What to add to times of the monotonic clock here so that they are the coordinator's: 0 on its
  // own machine, else by the quickest heartbeat so far.
  virtual kj::Duration clockAhead() const = 0;
};

}  // namespace runner
