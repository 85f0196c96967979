// rpc/shard/shared_values.h: the memory in which a server keeps its values.
#pragma once

#include "rpc/shared_memory/shared_layout.h"
#include "rpc/shared_memory/shared_memory.h"

namespace rpc {

// Memory for planes of values, which a server may share. In a plane, consecutive slices lie one
// after the other if their sizes are whole cache lines. Then they can share an entry of an answer.
class SharedValues {
public:
  SharedValues(const Placement& placement, uint shard, const Rounds& rounds)
      : layout(placement, shard, rounds),
        memory(SharedMemory::create(layout.bytes(), SharedMemory::READ)) {}

  // Returns the memory of a slice in a plane. It must not be used after this object is destroyed.
  kj::Array<float> of(SliceId id, uint plane) const {
    auto values = layout.values(memory->bytes(), id, plane);
    return kj::Array<float>(values.begin(), values.size(), kj::NullArrayDisposer::instance);
  }
  int descriptor() const { return memory->descriptor(); }

private:
  ServerLayout layout;
  kj::Own<SharedMemory> memory;
};

}  // namespace rpc
