// tools/bench/links.h: hosts behind slow links, on this machine.
#pragma once

#include <kj/array.h>
#include <kj/io.h>

#include "tools/bench/streams.h"

namespace tools {

using kj::uint;

// Hosts, each a network namespace whose one link has a token bucket in either direction, joined by
// a bridge in a namespace of its own. The namespaces have no names: when this object and all
// sockets in them are gone, however this process ends, so are they, and the machine's own network
// is never touched. A connection between sockets of two hosts goes through both links, whichever
// processes hold its ends. For one thread, which changes its namespace within each call.
class Links {
public:
  static constexpr uint HOSTS_MAX = 64;
  // Token buckets of 80 KiB give about that.
  static constexpr uint MBIT_MAX = 2500;

  // Each link has so many Mbit/s each way, Ethernet's frames counted. Needs root, and iproute2;
  // throws if they are missing.
  Links(uint hosts, uint mbit);
  KJ_DISALLOW_COPY(Links);

  // The near end is at host `from`, the far one at host `to`. Within a host it goes through no
  // link.
  StreamPair connect(uint from, uint to);

private:
  kj::AutoCloseFd home;
  kj::AutoCloseFd bridge;
  kj::Array<kj::AutoCloseFd> hosts;
};

}  // namespace tools
