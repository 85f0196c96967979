// rpc/wire/acceptor.h: accepts connections, and limits what a peer can cost before it opens a
// session.
#pragma once

#include <kj/timer.h>

#include "rpc/wire/peer.h"

namespace rpc {

// Limits on strangers. A stranger is a peer that has not been given a session yet, by `join` of a
// coordinator or `hello` of a server. Whoever reaches the port can connect, so a stranger may be a
// port scanner, or worse.
struct StrangerLimits {
  // The most strangers that are connected at a time. The default leaves most of the process's file
  // descriptors to the job.
  uint connections = defaultConnections();
  // How long a stranger may take to open its session, in this process's RunningTime.
  kj::Duration patience = 5 * kj::SECONDS;
  // The same while `connections` strangers are connected and another one waits to be accepted.
  kj::Duration patienceWhenFull = 1 * kj::SECONDS;
  // How many connections are accepted per `pause`, whoever makes them. Accepting one takes about
  // 0.06 ms. Therefore a flood of connections takes a small part of the thread's time, and roles
  // that have joined are still heard.
  uint accepted = 32;
  kj::Duration pause = 10 * kj::MILLISECONDS;
  // The most that a stranger may send. A role needs a tenth of it. Each byte may cost about forty
  // bytes of memory, because tiny messages have answers, too.
  uint64_t bytes = 8 << 10;

  static uint defaultConnections();
};

// Serves `bootstrap` over every connection that `receiver` accepts. A connection that breaks does
// not disturb the others. A stranger that exceeds the limits in `strangers` is disconnected. New
// connections wait while there are too many strangers, while strangers come too fast, or while the
// process has no free file descriptor.
//
// Never resolves. Rejects when accepting fails for another reason. Dropping the promise closes all
// connections. `timer` and `receiver` must outlive the promise.
kj::Promise<void> serveAll(kj::Timer& timer, kj::ConnectionReceiver& receiver, MessageLimits limits,
    capnp::Capability::Client bootstrap, StrangerLimits strangers = {});

}  // namespace rpc
