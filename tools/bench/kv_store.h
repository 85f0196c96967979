// tools/bench/kv_store.h: the sides of `bench kvstore`: the store, and the machine without it.
#pragma once

#include "tools/bench/kv_case.h"
#include "tools/bench/kv_processes.h"

namespace tools {

// Starts connected workers and servers that use the store.
kj::Own<KvSide> startStore(const KvCase& kvCase, Wire wire, KvCores cores);

// Starts a pair of processes per worker and server, each on the core of the role that it
// represents. A pair writes and reads back a server's share of all values over a raw stream.
kj::Own<KvSide> startLimit(const KvCase& kvCase, Wire wire, KvCores cores);

// Adds one such pair over a stream to `side`. A round trip writes `floats` floats, and then reads
// them back.
void addRawStream(KvSide& side, uint64_t floats, KvCores cores, StreamPair stream);

}  // namespace tools
