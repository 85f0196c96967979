// runner/launch/host_agent.h: starts roles on this machine for a launcher on another one.
#pragma once

#include <kj/async-io.h>

#include "runner/launch/host.capnp.h"

namespace runner {

// The service that serveHost() serves. `io` must outlive it.
HostAgent::Client newHostAgent(kj::AsyncIoContext& io);

// Serves the interface HostAgent (host.capnp) over standard input and output. Returns when the
// launcher has closed the connection or is silent. No role that it has started is left then. The
// process must capture child exits.
void serveHost();

// Whether this program may be used, as far as is cheap to know: its files are as they were copied.
bool isAsCopied();

}  // namespace runner
