// rpc/shard/asked.h: the slices of a worker's call, as its server reads them.
#pragma once

#include <kj/vector.h>

#include "rpc/codec/encoding.h"
#include "rpc/kvstore.capnp.h"
#include "rpc/placement.h"

namespace rpc {

// Keeps its memory from call to call, and refers to that of the call.
class Asked {
public:
  // `placement` must outlive it.
  explicit Asked(const Placement& placement): placement(placement) {}

  struct Slice {
    SliceId id;
    codec::Bytes payload;
    uint64_t due;  // progress that answers it; 0 at first
  };

  // One call's slices, each with its own part of what an entry carries. Ids, sizes and payloads are
  // those of the call: the shard looks whether they are right. Throws FAILED if ids do not ascend.
  void read(capnp::List<SliceFloats>::Reader list, const codec::Encoding& encoding);
  void read(capnp::List<uint32_t>::Reader list);

  kj::ArrayPtr<Slice> all() { return slices; }

private:
  void add(SliceId id, codec::Bytes payload);
  uint slicesIn(uint64_t bytes, SliceId id) const;

  const Placement& placement;
  kj::Vector<Slice> slices;
};

}  // namespace rpc
