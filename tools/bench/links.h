// tools/bench/links.h: simulates hosts behind slow links on this machine.
#pragma once

#include <kj/array.h>
#include <kj/io.h>

#include "tools/bench/streams.h"

namespace tools {

using kj::uint;

// Hosts that a bridge joins. Each host is a network namespace. Its one link has a token bucket in
// either direction. The bridge has its own namespace. The namespaces have no names: they disappear
// with this object and all sockets in them, however this process ends. The machine's own network is
// never changed. A connection between sockets of two hosts goes through both links, whichever
// processes hold its ends. For one thread, which changes its namespace within each call.
class Links {
public:
  static constexpr uint HOSTS_MAX = 64;
  // Roughly the highest rate that token buckets of 80 KiB can reach.
  static constexpr uint MBIT_MAX = 2500;

  // Each link has `mbit` Mbit/s in each direction, including Ethernet's frames. Needs root and
  // iproute2. Throws if they are missing.
  Links(uint hosts, uint mbit);
  KJ_DISALLOW_COPY(Links);

  // Returns a connection whose near end is at host `from`, and whose far end is at host `to`.
  // Within one host, it uses no link.
  StreamPair connect(uint from, uint to);

private:
  kj::AutoCloseFd home;
  kj::AutoCloseFd bridge;
  kj::Array<kj::AutoCloseFd> hosts;
};

}  // namespace tools
