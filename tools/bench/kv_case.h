// tools/bench/kv_case.h: what `bench kvstore` measures at a time, and how its processes hear of it.
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
  UNIX,    // a Unix socket
  MEMORY,  // memory that both have mapped; who waits sleeps
  COPY,    // not at all: two copies within the worker's process
};
constexpr uint WIRES = 4;

// `tcp`, `unix`, `memory`, `copy`.
kj::StringPtr KJ_STRINGIFY(Wire wire);

// The workers push all keys, and pull them.
struct KvCase {
  uint64_t key_bytes;  // float32
  uint keys;
  uint workers;
  uint servers;
  uint64_t slice_bytes;
  bool sgd;  // momentum; otherwise the new values are the sum of the gradients

  // Of all keys.
  uint64_t bytes() const { return key_bytes * keys; }
  uint64_t floats() const { return bytes() / sizeof(float); }
  // Of each of a worker's raw streams, one a server.
  uint64_t streamFloats() const { return (floats() + servers - 1) / servers; }

  rpc::Placement placement() const;
  rpc::Rounds rounds() const;
};

// A process of the bench. Its standard input brings orders, its standard output takes the answers;
// descriptor FIRST_STREAM and those that follow lead to the processes it speaks to.
struct KvRole {
  enum What : uint {
    WORKER,  // a stream to each server
    SERVER,  // a stream to each worker
    PROBE,   // the raw limit: writes and reads back over one stream
    ECHO,    // the other end of it
  } what;
  uint index;
  Wire wire;
  KvCase kvCase;
};
constexpr int FIRST_STREAM = 3;

// What tells `bench` to be a role, first among its arguments.
constexpr kj::StringPtr KV_ROLE = "kvstore-role"_kj;

// The arguments that start a role, without KV_ROLE, and the role that they start. Throws if they
// are none.
kj::Array<kj::String> wordsOf(const KvRole& role);
KvRole readRole(kj::ArrayPtr<const kj::StringPtr> words);
// `worker 0`, for messages.
kj::String KJ_STRINGIFY(const KvRole& role);

// What is written to a role's standard input.
struct KvOrder {
  enum What : uint64_t {
    // Make so many round trips; the answer is the nanoseconds of each, 8 bytes each.
    TRIPS,
    // Make a few round trips and compare all values with what they should be; the answer is 8
    // bytes. A role that finds them wrong says so and ends.
    CHECK,
    // What only workers of `bench network` know: see bench_network_roles.h.
    COMPUTE,
    EXCHANGE,
    WAIT,
    TRAFFIC,
  } what;
  uint64_t count;
};

}  // namespace tools
