// rpc/wire/listener.h: where a server listens, and how a worker connects to it.
#pragma once

#include <kj/async-io.h>
#include <kj/memory.h>
#include <kj/string.h>

#include "rpc/transport.h"
#include "rpc/wire/acceptor.h"
#include "rpc/wire/peer.h"
#include "rpc/wire/proof.h"

namespace rpc {

// The loopback address. Roles listen on it if their job does not leave its machine.
constexpr kj::StringPtr LOOPBACK = "127.0.0.1"_kj;

// Returns whether `host`, a numeric address, belongs to the loopback: only this machine reaches it.
bool isLoopback(kj::StringPtr host);

// Returns the numeric address of this machine that a TCP connection uses: "10.0.0.4", or
// "[fd00::4]" for IPv6. Other machines in the same network reach this machine at this address.
kj::String localHostOf(kj::AsyncIoStream& stream);

// Where a server listens.
struct ServerAddress {
  kj::String tcp;    // "127.0.0.1:4711"
  kj::String local;  // "unix-abstract:…", valid on its machine (network namespace); may be empty
};

// Ports that a role may listen on, first and last included. 0 and 0: the system chooses one.
struct PortRange {
  uint16_t first = 0;
  uint16_t last = 0;
};

// Reads "7000" or "7000-7031". Null for anything else.
kj::Maybe<PortRange> parsePorts(kj::StringPtr text);

// A server's sockets: a TCP port and, if the transport has it, a Unix socket with a random name.
// The Unix socket is abstract. It has no file, so nothing remains after the process has ended.
class Listener {
public:
  // Listens on the first free port of `ports`. `host` is an address of this machine: see
  // localHostOf(). Rejects with FAILED, and says what to do, if no port is free or the machine does
  // not have the address.
  static kj::Promise<kj::Own<Listener>> listen(kj::Network& network, const Transport& transport,
      kj::StringPtr host = LOOPBACK, PortRange ports = {});

  virtual ~Listener() noexcept(false) = default;
  virtual const ServerAddress& address() const = 0;
  // Serves `bootstrap` over every connection to any of the sockets; see serveAll(). The listener,
  // `own`, `timer` and `tellRefused` must outlive the promise.
  virtual kj::Promise<void> serve(kj::Timer& timer, MessageLimits limits,
      capnp::Capability::Client bootstrap, const Identity& own,
      kj::Maybe<TellRefused&> tellRefused = nullptr) = 0;
};

// Connects to `server` by `transport`. Resolves when both ends have opened the connection: see
// opening.h. If the transport has a Unix socket, tries it first. The socket's name is random, so it
// is found only on the server's machine. If that fails, uses TCP, unless the transport requires the
// Unix socket. Rejects if the server cannot be reached, or does not prove that it is `server`.
// `network`, `transport` and `own` must outlive the promise.
kj::Promise<kj::Own<kj::AsyncIoStream>> connect(kj::Network& network, const ServerAddress& address,
    const Transport& transport, const Identity& own, kj::StringPtr server);

}  // namespace rpc
