// rpc/transport.h: how workers reach servers: TCP, a Unix socket, or shared memory on one machine.
#pragma once

#include <kj/async-io.h>
#include <kj/memory.h>
#include <kj/string.h>

#include "rpc/peer.h"

namespace rpc {

// A row of the table of `transport`.
struct Transport {
  const char* name;  // auto, tcp, unix, shared_memory
  const char* doc;
  // Whether servers listen on a Unix socket, and workers try it first.
  bool hasLocal;
  // Whether workers share memory with the servers of their machine.
  bool sharesMemory;
  // Whether a server that cannot be reached so is an error; otherwise the next best is taken.
  bool isRequired;
};
extern const kj::ArrayPtr<const Transport> TRANSPORTS;  // the first is the default
extern const Transport& TCP;

// Where a server listens.
struct ServerAddress {
  kj::String tcp;    // "127.0.0.1:4711"
  kj::String local;  // "unix-abstract:…", of its machine (network namespace) alone; may be empty
};

// A server's sockets: a port of the loopback that the system chooses and, if the transport has it,
// a Unix socket whose name nobody else has. That is an abstract one: it has no file, so nothing is
// left of it however the process ends.
class Listener {
public:
  static kj::Promise<kj::Own<Listener>> listen(kj::Network& network, const Transport& transport);

  virtual ~Listener() noexcept(false) = default;
  virtual const ServerAddress& address() const = 0;
  // Serves `bootstrap` over every connection to any of the sockets; see serveAll(). The listener
  // and `timer` must outlive the promise.
  virtual kj::Promise<void> serve(
      kj::Timer& timer, MessageLimits limits, capnp::Capability::Client bootstrap) = 0;
};

// Connects to a server by `transport`. A name of a Unix socket is drawn at random, so that whoever
// reaches it is on the server's machine. Rejects if nothing leads there.
kj::Promise<kj::Own<kj::AsyncIoStream>> connect(
    kj::Network& network, const ServerAddress& address, const Transport& transport);

}  // namespace rpc
