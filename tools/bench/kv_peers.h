// tools/bench/kv_peers.h: other programs that sum the arrays of all workers and return the sum to
// all.
#pragma once

#include <kj/string.h>

#include "tools/bench/kv_case.h"
#include "tools/bench/kv_processes.h"

namespace tools {

// A program that sums the bytes of all keys over processes. There is one process per worker, at
// least two, and every second one runs on the core that is meant for servers. The results are
// checked like those of a store.
class KvPeer {
public:
  virtual ~KvPeer() noexcept(false) = default;

  const kj::StringPtr name;
  // The program and its version. Empty if there is nothing to print.
  kj::String version;
  // Why the program is not available, or null.
  kj::Maybe<kj::String> missing;

  // Call it only if the program is available.
  virtual kj::Own<KvSide> start(const KvCase& kvCase, KvCores cores) = 0;

protected:
  explicit KvPeer(kj::StringPtr name): name(name) {}
};

// The sum of torch.distributed over gloo. `python` is passed to findTorch(), which may throw.
kj::Own<KvPeer> newGloo(kj::StringPtr python);
// MPI_Allreduce. The program is compiled here.
kj::Own<KvPeer> newMpi();

}  // namespace tools
