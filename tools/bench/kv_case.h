// tools/bench/kv_case.h: one case of `bench kvstore`, and the protocol with its processes.
#pragma once

#include <kj/array.h>
#include <kj/string.h>

#include <cstdint>

#include "rpc/placement.h"
#include "rpc/rounds.h"

namespace tools {

using kj::uint;

// How bytes get from a worker to a server and back.
enum class Wire : uint {
  TCP,     // over the loopback
  UNIX,    // over a Unix socket
  MEMORY,  // memory that both have mapped; the waiting side sleeps
  COPY,    // two copies within the worker's process
};
constexpr uint WIRES = 4;

// Returns `tcp`, `unix`, `memory` or `copy`.
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
  // The floats of each raw stream of a worker. There is one stream per server.
  uint64_t streamFloats() const { return (floats() + servers - 1) / servers; }

  rpc::Placement placement() const;
  rpc::Rounds rounds() const;
};

// A process of the bench. Orders come on its standard input, and answers go to its standard output.
// The descriptors from FIRST_STREAM on are connections to other processes.
struct KvRole {
  enum What : uint {
    WORKER,  // has a stream to each server
    SERVER,  // has a stream to each worker
    PROBE,   // measures the raw limit: writes and reads back over one stream
    ECHO,    // the other end of a PROBE
  } what;
  uint index;
  Wire wire;
  KvCase kvCase;
};
constexpr int FIRST_STREAM = 3;

// The first argument of a `bench` process that is a role.
constexpr kj::StringPtr KV_ROLE = "kvstore-role"_kj;

// wordsOf() returns the arguments that start a role, without KV_ROLE. readRole() reads them, and
// throws if they are wrong.
kj::Array<kj::String> wordsOf(const KvRole& role);
KvRole readRole(kj::ArrayPtr<const kj::StringPtr> words);
// Returns `worker 0`, for messages.
kj::String KJ_STRINGIFY(const KvRole& role);

// What is written to a role's standard input.
struct KvOrder {
  enum What : uint64_t {
    // Make `count` round trips. The answer is the nanoseconds of each, 8 bytes each.
    TRIPS,
    // Make a few round trips and compare all values with the right ones. The answer is 8 bytes. A
    // role with wrong values prints an error and ends.
    CHECK,
    // Orders for workers of `bench network` only: see network_roles.h.
    COMPUTE,
    EXCHANGE,
    WAIT,
    TRAFFIC,
  } what;
  uint64_t count;
};

}  // namespace tools
