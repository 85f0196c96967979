// rpc/shared_memory/shared_memory.h: unnamed memory that two processes map. One passes it to the
// other as a descriptor.
#pragma once

#include <kj/array.h>
#include <kj/io.h>
#include <kj/memory.h>

#include <cstdint>

namespace rpc {

// A mapped memfd. Its size can never change, so no process can crash another one by shrinking it.
// The memory is freed when the last process that has it ends, however it ends.
class SharedMemory {
public:
  enum Access { READ, WRITE };

  // Makes new memory of zeros. This process may write it, and others have the access `others`.
  // Pages that nobody touches cost nothing. bytes > 0. Throws if the system cannot make it. If
  // memory runs out later, the process that touches a new page is killed.
  static kj::Own<SharedMemory> create(uint64_t bytes, Access others);
  // Maps memory that another process created. Throws FAILED and maps nothing if the memory does not
  // have exactly `bytes` bytes, or if its size may still change. The caller keeps `descriptor`.
  static kj::Own<SharedMemory> map(int descriptor, uint64_t bytes, Access access);

  // Use create() or map().
  SharedMemory(kj::AutoCloseFd descriptor, kj::ArrayPtr<kj::byte> bytes);
  ~SharedMemory() noexcept(false);
  KJ_DISALLOW_COPY(SharedMemory);

  // Begins at a page's border. Writing to memory that was mapped to READ kills the process.
  kj::ArrayPtr<kj::byte> bytes() const { return mapped; }
  // The descriptor to pass to another process. Only for created memory.
  int descriptor() const { return own; }

private:
  kj::AutoCloseFd own;
  kj::ArrayPtr<kj::byte> mapped;
};

}  // namespace rpc
