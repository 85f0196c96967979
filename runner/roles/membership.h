// runner/roles/membership.h: a role's connection to the coordinator. It joins the job, sends
// heartbeats, and learns when the job is over.
#pragma once

#include <kj/async-io.h>
#include <kj/debug.h>
#include <kj/function.h>
#include <kj/memory.h>

#include "io/batches/division.h"
#include "rpc/shard/shard.h"
#include "rpc/wire/listener.h"
#include "rpc/wire/peer.h"
#include "rpc/wire/proof.h"
#include "runner/experiment/experiment.h"
#include "runner/logs/job.capnp.h"
#include "runner/roles/role_options.h"
#include "runner/roles/stop_point.h"

namespace runner {

// The coordinator's calls to a role: see Member in job.capnp. On the event loop of its membership.
class MemberCalls {
public:
  virtual ~MemberCalls() noexcept(false) = default;

  // For servers: fills in the server's counts. The builder lives until the promise resolves.
  virtual kj::Promise<void> count(Pushes::Builder) { KJ_FAIL_REQUIRE("only servers count pushes"); }
  // For workers.
  virtual StopPoint::Answer stopAt(uint64_t) { KJ_FAIL_REQUIRE("only workers stop"); }
  virtual void decide(uint64_t, bool) { KJ_FAIL_REQUIRE("only workers stop"); }
  // For servers: change the members of the job. See Member in job.capnp.
  virtual kj::Array<rpc::Shard::SliceSteps> fenceWorker(uint) { KJ_FAIL_REQUIRE("not a server"); }
  virtual void leaveWorker(uint) { KJ_FAIL_REQUIRE("not a server"); }
  virtual void admitWorker(uint, uint64_t) { KJ_FAIL_REQUIRE("not a server"); }
  // For workers.
  virtual void setMembers(kj::Array<io::MemberChange>) { KJ_FAIL_REQUIRE("not a worker"); }
  // For workers that leave the job when a signal asks them to. The next signal ends the process.
  virtual void leaveSoon() { KJ_FAIL_REQUIRE("not a worker"); }
  // For roles that hold a shard: copies it.
  virtual void saveShard(uint64_t) { KJ_FAIL_REQUIRE("this role holds no shard"); }
};

// Resolves to the first of these signals that this process receives. The process must have captured
// them.
kj::Promise<int> interruption(kj::AsyncIoContext& io, kj::ArrayPtr<const int> signals);

// Lives on an event loop, and as long as the role.
class Membership {
public:
  // Calls the coordinator (see coordinator_call.h) and joins the job. A role without a launcher
  // says so on stderr. With `transport`, the role holds a shard: it listens where the other roles
  // reach this machine, at the address that leads from here to the coordinator. `progress` fills in
  // each heartbeat. `calls` answers the coordinator. The promise resolves when the coordinator has
  // accepted the role. It rejects if the coordinator does not answer within
  // cluster.start_timeout_s. All arguments must outlive the membership.
  static kj::Promise<kj::Own<Membership>> join(kj::AsyncIoContext& io,
      const LoadedExperiment& loaded, const RoleOptions& options,
      kj::Maybe<const rpc::Transport&> transport, rpc::MessageLimits limits,
      kj::Function<void(RoleProgress::Builder)> progress, MemberCalls& calls);

  virtual ~Membership() noexcept(false) = default;

  // Returns the capability through which the role calls the coordinator.
  virtual Session::Client session() = 0;
  // Whether the run continues from a checkpoint.
  virtual bool continues() const = 0;
  // Whether the job runs without this worker until it enters.
  virtual bool enters() const = 0;
  // Returns the sockets of a role that holds a shard.
  virtual rpc::Listener& listener() = 0;
  // Returns what this role proves to the other roles that hold or use shards.
  virtual rpc::Identity identity() const = 0;
  // Resolves when the coordinator says that the job is over. Rejects with DISCONNECTED when the
  // coordinator is lost. Without a launcher, which would watch the coordinator, also rejects when
  // the coordinator is silent for cluster.silence_timeout_s. Also rejects after fail(). Call once.
  virtual kj::Promise<void> ended() = 0;
  // The role cannot continue, because something that it does in the background has failed, such as
  // sending a part of a checkpoint. Lets ended() reject with `e`. Does nothing if `e` only means
  // that the coordinator was lost: ended() says that better.
  virtual void fail(kj::Exception&& e) = 0;
  // Tells the coordinator why this role ends, which ends the job. Resolves when the coordinator has
  // answered, but after a second at the latest. Resolves immediately if `failure` says that the
  // coordinator was lost. The result is the text for the user: the reason of `failure`. If
  // `failure` says that another role was lost, and the coordinator is lost too or does not answer,
  // the text begins with the coordinator.
  virtual kj::Promise<kj::String> tellFailure(const kj::Exception& failure) = 0;
  // Returns by how much the coordinator's monotonic clock is ahead of the clock here. 0 on the
  // coordinator's own machine. Otherwise the quickest heartbeat so far determines it.
  virtual kj::Duration clockAhead() const = 0;
};

}  // namespace runner
