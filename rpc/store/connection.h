// rpc/store/connection.h: a worker's session with one server, over one connection.
#pragma once

#include <kj/async.h>

#include "rpc/kvstore.capnp.h"
#include "rpc/placement.h"
#include "rpc/rounds.h"
#include "rpc/store/remote_store.h"
#include "rpc/wire/peer.h"

namespace rpc {

// A session and the calls that are under way in it. Dropping it closes the connection, and the
// promises of the calls are dropped. The session with a shard of the worker's own has no peer.
class Connection final: private kj::TaskSet::ErrorHandler {
public:
  Connection(kj::Maybe<kj::Own<Peer>> peer, ShardSession::Client session);
  KJ_DISALLOW_COPY(Connection);

  ShardSession::Client& session() { return opened; }
  // Resolves when what was sent before is with the kernel, to the bytes that are worth sending
  // next: see Wire.
  kj::Promise<uint64_t> whenTaken();
  // How the other end is reached: tcp, unix; in_process for a shard of the worker's own.
  const char* transport() const;
  // What a call does, to the end.
  void add(kj::Promise<void> call) { calls.add(kj::mv(call)); }
  // Rejects with what failed first: a call, or the connection (DISCONNECTED). Call once.
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
// pauses, until servers.patience is over in RunningTime. Rejects at once if the server refuses, or
// if nobody listens at its address. `loss` is what ended the connection before, if there was one:
// in the second case the promise rejects with it. All references must outlive the promise.
kj::Promise<kj::Own<Connection>> openSession(const Placement& placement, const Rounds& rounds,
    uint rank, Servers& servers, uint server, kj::Maybe<kj::Exception> loss);

}  // namespace rpc
