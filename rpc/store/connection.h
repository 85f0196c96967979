// rpc/store/connection.h: a worker's session with one server, over one connection.
#pragma once

#include <kj/async.h>

#include "rpc/kvstore.capnp.h"
#include "rpc/placement.h"
#include "rpc/rounds.h"
#include "rpc/store/remote_store.h"
#include "rpc/wire/peer.h"

namespace rpc {

// A session and its calls in flight. Dropping it closes the connection and drops the promises of
// the calls. A session with the worker's own shard has no peer.
class Connection final: private kj::TaskSet::ErrorHandler {
public:
  Connection(kj::Maybe<kj::Own<Peer>> peer, ShardSession::Client session);
  KJ_DISALLOW_COPY(Connection);

  ShardSession::Client& session() { return opened; }
  // Resolves when the kernel has taken all calls that were sent before. The result is how many
  // bytes to send next: see Wire::window_bytes().
  kj::Promise<uint64_t> whenTaken();
  // How the server is reached: tcp, unix, or in_process for the worker's own shard.
  const char* transport() const;
  // Keeps the promise of a call until it has resolved.
  void add(kj::Promise<void> call) { calls.add(kj::mv(call)); }
  // Rejects with the first failure, of a call or of the connection (DISCONNECTED). Call once.
  kj::Promise<void> whenBroken() { return kj::mv(failed.promise); }

private:
  void taskFailed(kj::Exception&& exception) override {
    failed.fulfiller->reject(kj::mv(exception));
  }

  kj::Maybe<kj::Own<Peer>> peer;
  ShardSession::Client opened;
  kj::PromiseFulfillerPair<void> failed;
  kj::TaskSet calls;
};

// Connects to `server` and opens the session of worker `rank` there. Tries again, with growing
// pauses, until servers.patience has passed in RunningTime. Rejects immediately if the server
// refuses, if nobody listens at its address, or if this process has no free descriptor. `loss` is
// the exception that ended the former connection, if there was one. If nobody listens, the promise
// rejects with `loss`. All references must outlive the promise.
kj::Promise<kj::Own<Connection>> openSession(const Placement& placement, const Rounds& rounds,
    uint rank, Servers& servers, uint server, kj::Maybe<kj::Exception> loss);

}  // namespace rpc
