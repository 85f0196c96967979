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

// Reads an address of this machine in numbers, with or without a port, at which a role may listen:
// "10.0.0.4", "10.0.0.4:7000", "fd00::4". Throws, saying what is wrong with `text`.
ListenPlace parseListenPlace(kj::StringPtr text);

// Returns the address in numbers at which a role of this machine listens, so that those who call
// `host` reach it. The systems of some distributions give their own name the address 127.0.1.1,
// which no other host reaches. The role then listens at the only address that is not the
// loopback's. With `isOneHost`, the loopback will do. Throws if this machine does not know `host`,
// or if it has several such addresses or none.
kj::String ownAddressOf(kj::StringPtr host, bool isOneHost);

// The same, from what the system says: the addresses of `host`, and those of this machine's network
// interfaces, in numbers and IPv6 in brackets.
kj::String chooseAddress(kj::StringPtr host, bool isOneHost,
    kj::ArrayPtr<const kj::String> resolved, kj::ArrayPtr<const kj::String> interfaces);

}  // namespace runner
