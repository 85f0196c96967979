// rpc/wire/listener.h: where a server listens, and how a worker connects to it.
#pragma once

#include <kj/async-io.h>
#include <kj/memory.h>
#include <kj/string.h>

#include "rpc/transport.h"
#include "rpc/wire/peer.h"
#include "rpc/wire/proof.h"

namespace rpc {

// Where a server listens.
struct ServerAddress {
  kj::String tcp;    // "127.0.0.1:4711"
  kj::String local;  // "unix-abstract:…", valid on its machine (network namespace); may be empty
};

// A server's sockets: a loopback port that the system chooses and, if the transport uses one, a
// Unix socket with a unique name. The Unix socket is abstract: it has no file, so nothing is left
// of it however the process ends.
class Listener {
public:
  static kj::Promise<kj::Own<Listener>> listen(kj::Network& network, const Transport& transport);

  virtual ~Listener() noexcept(false) = default;
  virtual const ServerAddress& address() const = 0;
  // Serves `bootstrap` over every connection to any of the sockets; see serveAll(). The listener,
  // `own` and `timer` must outlive the promise.
  virtual kj::Promise<void> serve(kj::Timer& timer, MessageLimits limits,
      capnp::Capability::Client bootstrap, const Identity& own) = 0;
};

// Connects to `server` by `transport`. Resolves when both ends have proven who they are: see
// proof.h. Names of Unix sockets are random, so whoever reaches one is on the server's machine.
// Rejects if the server cannot be reached, or does not prove that it is `server`. `network` and
// `own` must outlive the promise.
kj::Promise<kj::Own<kj::AsyncIoStream>> connect(kj::Network& network, const ServerAddress& address,
    const Transport& transport, const Identity& own, kj::StringPtr server);

}  // namespace rpc
