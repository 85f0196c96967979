// rpc/shard/shared_values.h: where a server keeps its values.
#pragma once

#include "rpc/shared_memory/shared_layout.h"
#include "rpc/shared_memory/shared_memory.h"

namespace rpc {

// Memory for planes of values, which a server may share. Slices that follow one another lie so in a
// plane, if their sizes are whole cache lines: then one entry answers for them.
class SharedValues {
public:
  SharedValues(const Placement& placement, uint shard, const Rounds& rounds)
      : layout(placement, shard, rounds),
        memory(SharedMemory::create(layout.bytes(), SharedMemory::READ)) {}

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
