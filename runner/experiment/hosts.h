// runner/experiment/hosts.h: `cluster.hosts`, and which roles run on which of them.
#pragma once

#include <kj/array.h>
#include <kj/string.h>

#include "configs/language/reader.h"

namespace runner {

using kj::uint;

// A machine that runs roles.
struct Host {
  kj::String name;        // a name or an address; an IPv6 address has no brackets
  kj::String user;        // empty: the one that ssh chooses
  uint sshPort = 0;       // 0: the one that ssh chooses
  kj::Maybe<uint> slots;  // how many workers it takes. Null: any number

  // Returns "node1", or "user@[fd00::1]:2222". User and port are left out if ssh chooses them.
  kj::String toString() const;
};

// Reads `hosts`. A host that is named several times is returned once, with the sum of its slots.
// Errors go to the reader's diagnostics. Empty if the key is absent.
kj::Array<Host> readHosts(configs::Reader& reader);

// Where the roles of a job run, as indices of its hosts.
struct RoleHosts {
  kj::Array<uint> servers;     // one per server
  kj::Array<uint> workers;     // one per worker
  kj::Array<uint> localRanks;  // per worker: how many workers with a lower index its host has
};

// Assigns roles to `hosts`. Servers and workers are each assigned one at a time, from the first
// host to the last and then again from the first. Servers that share a process stay together. A
// host that has as many workers as slots is passed over. Null if the hosts have fewer slots than
// there are workers.
kj::Maybe<RoleHosts> placeRoles(
    kj::ArrayPtr<const Host> hosts, uint servers, uint serversPerProcess, uint workers);

}  // namespace runner
