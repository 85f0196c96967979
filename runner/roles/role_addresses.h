// runner/roles/role_addresses.h: the addresses that people and other systems give to roles.
#pragma once

#include <kj/array.h>
#include <kj/string.h>

#include "runner/roles/role_options.h"

namespace runner {

// A host's name or address, and a port. An IPv6 address keeps its brackets.
struct HostAndPort {
  kj::String host;
  uint16_t port;
};

// Reads "127.0.0.1:41234", "node1:7000" or "[fd00::4]:7000". Null if `text` is something else. Does
// not look up the host.
kj::Maybe<HostAndPort> parseHostAndPort(kj::StringPtr text);

// Reads a numeric address of this machine, with or without a port, at which a role may listen:
// "10.0.0.4", "10.0.0.4:7000", "fd00::4". Throws, saying what is wrong with `text`.
ListenPlace parseListenPlace(kj::StringPtr text);

}  // namespace runner
