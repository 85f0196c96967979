// rpc/modes/modes.h: the closed table of kvstore modes, and the section [kvstore].
#pragma once

#include <kj/array.h>

#include "rpc/modes/mode.h"
#include "rpc/placement.h"
#include "rpc/rounds.h"
#include "rpc/transport.h"

namespace rpc {

extern const kj::ArrayPtr<const ModeRow> MODES;  // the first is the default

// The section [kvstore].
struct KvStoreConfig {
  kj::Own<const Mode> mode;
  codec::Codec codec;
  uint64_t slice_bytes;
  const PlacementRule* placement;
  const Transport* transport;

  const char* modeName() const { return mode->row.name; }
  // Whether shards are in server processes.
  bool hasServers() const { return mode->row.shards == Shards::IN_SERVERS; }
  // Whether every worker holds a shard.
  bool workersHoldShards() const { return mode->row.shards == Shards::IN_EVERY_WORKER; }
  // Whether roles exchange pushes and answers.
  bool exchanges() const { return mode->row.shards != Shards::IN_WORKER; }
  // Returns how many shards there are.
  uint shards(uint servers, uint workers) const;
  // Returns the rule by which pushes become updates, and the encoding of messages.
  Rounds rounds(uint workers) const;
  // Whether pushes go through shared memory on one machine. Encoded pushes are sent in messages.
  bool sharesMemory() const { return exchanges() && transport->sharesMemory && codec.isPlain(); }

  static KvStoreConfig read(configs::Reader& reader);
};

}  // namespace rpc
