// tools/bench/kv_peers.h: what others do with the same bytes: the sum of all workers' arrays, at
// all of them.
#pragma once

#include <kj/string.h>

#include "tools/bench/kv_processes.h"

namespace tools {

// Something else that sums the bytes of all keys over processes: one for each worker, but at least
// two, every second one on the core of servers. Checked like a store.
class KvPeer {
public:
  virtual ~KvPeer() noexcept(false) = default;

  const kj::StringPtr name;
  // The program behind it with its version; empty if there is nothing to tell.
  kj::String version;
  // Why it is not here; null if it is.
  kj::Maybe<kj::String> missing;

  // Only if it is here.
  virtual kj::Own<KvSide> start(const KvCase& kvCase, KvCores cores) = 0;

protected:
  explicit KvPeer(kj::StringPtr name): name(name) {}
};

// torch.distributed's, over gloo. `python` is for findTorch(), which may throw.
kj::Own<KvPeer> newGloo(kj::StringPtr python);
// MPI_Allreduce; the program is compiled here.
kj::Own<KvPeer> newMpi();

}  // namespace tools
