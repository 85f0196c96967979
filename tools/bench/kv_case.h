// tools/bench/kv_case.h: one case of `bench kvstore`.
#pragma once

#include <kj/array.h>
#include <kj/string.h>

#include <cstdint>

#include "rpc/placement.h"
#include "rpc/rounds.h"

namespace tools {

using kj::uint;

// The connection between a worker and a server.
enum class Wire : uint {
  TCP,     // over the loopback
  TLS,     // the same, encrypted
  UNIX,    // over a Unix socket
  MEMORY,  // memory that both have mapped; the waiting side sleeps
  COPY,    // two copies within the worker's process
};

// Returns `tcp`, `tls`, `unix`, `memory` or `copy`.
kj::StringPtr KJ_STRINGIFY(Wire wire);

// A case. In each round trip the workers push all keys, and pull them.
struct KvCase {
  uint64_t key_bytes;  // float32
  uint keys;
  uint workers;
  uint servers;
  uint64_t slice_bytes;
  bool sgd;  // momentum; if false, the new values are the sum of the gradients

  // Of all keys.
  uint64_t bytes() const { return key_bytes * keys; }
  uint64_t floats() const { return bytes() / sizeof(float); }

  rpc::Placement placement() const;
  rpc::Rounds rounds() const;
};

}  // namespace tools
