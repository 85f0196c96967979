// rpc/shared_memory/shared_memory.h: memory without a name that two processes map, handed over as a
// descriptor.
#pragma once

#include <kj/array.h>
#include <kj/io.h>
#include <kj/memory.h>

#include <cstdint>

namespace rpc {

// A mapped memfd. Its size can never change, so that no process can make another die of reading
// beyond it, and nothing is left of it when the last process that has it ends, however it ends.
class SharedMemory {
public:
  enum Access { READ, WRITE };

  // New memory of zeros; this process writes, others may do `others` with it. Pages that nobody
  // touches cost nothing. bytes > 0. Throws if the system has none to give.
  static kj::Own<SharedMemory> create(uint64_t bytes, Access others);
  // Maps what another process created. Throws FAILED, before anything is mapped, if it does not
  // have exactly so many bytes or if its size may still change. `descriptor` stays the caller's.
  static kj::Own<SharedMemory> map(int descriptor, uint64_t bytes, Access access);

  // Use create() or map().
  SharedMemory(kj::AutoCloseFd descriptor, kj::ArrayPtr<kj::byte> bytes);
  ~SharedMemory() noexcept(false);
  KJ_DISALLOW_COPY(SharedMemory);

  // At a page's border. Writing to what was mapped to READ kills the process.
  kj::ArrayPtr<kj::byte> bytes() const { return mapped; }
  // To be handed over; of created memory alone.
  int descriptor() const { return own; }

private:
  kj::AutoCloseFd own;
  kj::ArrayPtr<kj::byte> mapped;
};

}  // namespace rpc
