// tools/bench_kv_peers.h: what others do with the same bytes: the sum of all workers' arrays, at
// all of them.
#pragma once

#include <kj/string.h>

#include "tools/bench_kv_processes.h"

namespace tools {

// Why there can be no startGloo(); null if there can.
kj::Maybe<kj::String> whyNoGloo();
// torch.distributed's allreduce of as many bytes as all keys have: a process for each worker, but
// at least two; every second one on the core of servers.
kj::Own<KvSide> startGloo(const KvCase& kvCase, KvCores cores);

}  // namespace tools
