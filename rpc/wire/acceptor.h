// rpc/wire/acceptor.h: accepts connections, and bounds what peers cost that have not opened a
// session.
#pragma once

#include <kj/timer.h>

#include "rpc/wire/peer.h"

namespace rpc {

// Limits on strangers: peers whose calls of the bootstrap capability have not been answered with a
// session yet (`join` of a coordinator, `hello` of a server). Whoever reaches the port can connect,
// so a stranger may be a port scanner, or worse.
struct StrangerLimits {
  // Connections of strangers at a time. By default as many as leave most of the process's file
  // descriptors to the job.
  uint connections = defaultConnections();
  // How long a stranger may take to open its session, in the running time of this process.
  kj::Duration patience = 5 * kj::SECONDS;
  // The same when there are as many strangers as there may be, and another one waits for a place.
  kj::Duration patienceWhenFull = 1 * kj::SECONDS;
  // Connections that are accepted in each `pause`, whoever makes them. Each costs some 0.06 ms. So
  // a flood of them takes a small part of the thread's time, and roles that have joined are heard.
  uint accepted = 32;
  kj::Duration pause = 10 * kj::MILLISECONDS;
  // What a stranger may send. What a role sends takes a tenth of it. Each byte may cost some forty
  // of memory, in answers to tiny messages.
  uint64_t bytes = 8 << 10;

  static uint defaultConnections();
};

// Serves `bootstrap` over every connection that `receiver` accepts; one that breaks does not
// disturb the others. A stranger that exceeds `strangers` is disconnected. While there are too many
// of them, or they come too fast, or the process has no file descriptor left, new connections wait.
// Never resolves; rejects when accepting fails for another reason. Dropping the promise closes all.
// `timer` and `receiver` must outlive it.
kj::Promise<void> serveAll(kj::Timer& timer, kj::ConnectionReceiver& receiver, MessageLimits limits,
    capnp::Capability::Client bootstrap, StrangerLimits strangers = {});

}  // namespace rpc
