// runner/launch/host_agent.h: starts roles on this machine for a launcher on another one.
#pragma once

#include <kj/async-io.h>

#include "runner/launch/host.capnp.h"

namespace runner {

// The service that serveHost() serves. `io` must outlive it.
HostAgent::Client newHostAgent(kj::AsyncIoContext& io);

// Serves the interface HostAgent (host.capnp) over standard input and output. Returns when the
// launcher has closed the connection or is silent. No role that it has started is left then. The
// process must capture child exits. Throws if no launcher can be at the other end of these streams.
void serveHost();

// Whether the files of this program are still those that a launcher has copied here, as far as a
// cheap check can tell. Always true of a program that no launcher has copied.
bool isAsCopied();

}  // namespace runner
