// rpc/wire/acceptor.h: accepts connections of the roles of a job, and limits the resources that
// strangers can take.
#pragma once

#include <kj/function.h>
#include <kj/timer.h>

#include "rpc/wire/peer.h"
#include "rpc/wire/proof.h"

namespace rpc {

// Limits on strangers. A stranger is a peer that has not proven yet that it belongs to the job (see
// proof.h). Anybody who reaches the port can connect, so a stranger may be a port scanner or an
// attacker.
struct StrangerLimits {
  // The most strangers that are connected at a time. The default leaves most of the process's file
  // descriptors to the job. If the process listens on many sockets, the limit per socket is lower,
  // so that all sockets together leave about half of the descriptors to the job.
  uint connections = defaultConnections();
  // How long a stranger may take for its proof, in this process's RunningTime.
  kj::Duration patience = 5 * kj::SECONDS;
  // The limit while `connections` strangers are connected and another one waits to be accepted.
  kj::Duration patienceWhenFull = 1 * kj::SECONDS;
  // How many connections are accepted per `pause`, from any peer. Accepting one takes about 0.06
  // ms. Therefore a flood of connections takes a small part of the thread's time, and roles that
  // have joined are still heard.
  uint accepted = 32;
  kj::Duration pause = 10 * kj::MILLISECONDS;

  static uint defaultConnections();
};

// Called with a sentence about a stranger that was refused: `a connection from 10.0.0.3 was
// refused: …`.
using TellRefused = kj::Function<void(kj::StringPtr sentence)>;

// Serves `bootstrap` over every connection that `receiver` accepts and whose other end proves that
// it belongs to the job of `own`. A connection that breaks does not disturb the others. A stranger
// that exceeds the limits in `strangers` is disconnected. So is another user of this machine who
// connects by a Unix socket, except root. The first refused connection is reported on stderr, and
// `tellRefused` is called for each. A stranger that leaves before it is asked for a proof does not
// count as refused. New connections wait while there are too many strangers, while strangers arrive
// too fast, or while the process has no free file descriptor.
//
// Never resolves. Rejects when accepting fails for another reason. Dropping the promise closes all
// connections. `timer`, `receiver`, `own` and `tellRefused` must outlive the promise.
kj::Promise<void> serveAll(kj::Timer& timer, kj::ConnectionReceiver& receiver, MessageLimits limits,
    capnp::Capability::Client bootstrap, const Identity& own, StrangerLimits strangers = {},
    kj::Maybe<TellRefused&> tellRefused = nullptr);

}  // namespace rpc
