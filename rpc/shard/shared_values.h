// rpc/shard/shared_values.h: the memory in which a server keeps its values.
#pragma once

#include "rpc/shared_memory/shared_layout.h"
#include "rpc/shared_memory/shared_memory.h"

namespace rpc {

// Memory for the buffers of a shard's values, which a server may share. The first buffers of
// consecutive slices are adjacent if their sizes are whole cache lines. So are their second
// buffers, and so on. Such slices can share an entry of an answer.
class SharedValues {
public:
  SharedValues(const Placement& placement, uint shard, const Rounds& rounds)
      : layout(placement, shard, rounds),
        memory(SharedMemory::create(layout.bytes(), SharedMemory::READ)) {}

  // Returns a buffer of a slice: see ValueMemory. It must not be used after this object is
  // destroyed.
  kj::Array<float> of(SliceId id, uint buffer) const {
    auto values = layout.values(memory->bytes(), id, buffer);
    return kj::Array<float>(values.begin(), values.size(), kj::NullArrayDisposer::instance);
  }
  int descriptor() const { return memory->descriptor(); }

private:
  ServerLayout layout;
  kj::Own<SharedMemory> memory;
};

}  // namespace rpc
