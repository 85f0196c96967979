// runner/launch/host_agent.h: starts roles on this machine for a launcher on another one.
#pragma once

#include <kj/async-io.h>

#include "runner/launch/host.capnp.h"

namespace runner {

// The service that serveHost() serves. `io` must outlive it.
HostAgent::Client newHostAgent(kj::AsyncIoContext& io);

// Serves the interface HostAgent (host.capnp) over standard input and output. Returns when the
// launcher has closed the connection or is silent. By then, all roles that it has started have
// ended. The process must capture child exits. Throws if no launcher can be at the other end of
// these streams.
void serveHost();

// Whether the files of this program are still as a launcher has copied them here, according to a
// cheap check. Always true if no launcher has copied the program.
bool isAsCopied();

}  // namespace runner
