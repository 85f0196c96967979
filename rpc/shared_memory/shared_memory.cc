#include "rpc/shared_memory/shared_memory.h"

#include <errno.h>
#include <fcntl.h>
#include <kj/debug.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "configs/language/failure.h"

namespace rpc {

namespace {

constexpr int SIZE_STAYS = F_SEAL_SHRINK | F_SEAL_GROW;

kj::ArrayPtr<kj::byte> mapAll(int descriptor, uint64_t bytes, int protection) {
  void* at = ::mmap(nullptr, bytes, protection, MAP_SHARED, descriptor, 0);
  if (at == MAP_FAILED) {
    int error = errno;
    configs::fail("cannot map ", bytes, " bytes of memory: ", strerror(error),
        ". Is there a limit (ulimit -v)? With more servers, each needs less");
  }
  return kj::arrayPtr(static_cast<kj::byte*>(at), bytes);
}

}  // namespace

kj::Own<SharedMemory> SharedMemory::create(uint64_t bytes, Access others) {
  KJ_REQUIRE(bytes > 0);
  int raw = ::memfd_create("runner", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (raw < 0 || ::ftruncate(raw, bytes) < 0) {
    int error = errno;
    kj::AutoCloseFd closes(raw);
    configs::fail("cannot make memory of ", bytes, " bytes: ", strerror(error),
        error == EFBIG ? ". Raise the limit on the size of a file (`ulimit -f`): it also applies "
                         "to shared memory"
                       : ". With more servers, each needs less");
  }
  kj::AutoCloseFd descriptor(raw);
  // The memory is mapped before it is sealed, so this mapping stays writable.
  auto memory =
      kj::heap<SharedMemory>(kj::mv(descriptor), mapAll(raw, bytes, PROT_READ | PROT_WRITE));
  int seals = SIZE_STAYS | F_SEAL_SEAL | (others == READ ? F_SEAL_FUTURE_WRITE : 0);
  KJ_SYSCALL(::fcntl(raw, F_ADD_SEALS, seals));
  return memory;
}

kj::Own<SharedMemory> SharedMemory::map(int descriptor, uint64_t bytes, Access access) {
  int seals = ::fcntl(descriptor, F_GET_SEALS);
  KJ_REQUIRE(seals >= 0 && (seals & SIZE_STAYS) == SIZE_STAYS,
      "memory to be shared must be sealed against a change of its size", seals);
  struct stat found;
  KJ_SYSCALL(::fstat(descriptor, &found));
  KJ_REQUIRE(uint64_t(found.st_size) == bytes, "memory to be shared has another size than agreed",
      found.st_size, bytes);
  int protection = access == WRITE ? PROT_READ | PROT_WRITE : PROT_READ;
  return kj::heap<SharedMemory>(kj::AutoCloseFd(), mapAll(descriptor, bytes, protection));
}

SharedMemory::SharedMemory(kj::AutoCloseFd descriptor, kj::ArrayPtr<kj::byte> bytes)
    : own(kj::mv(descriptor)), mapped(bytes) {}

SharedMemory::~SharedMemory() noexcept(false) {
  ::munmap(mapped.begin(), mapped.size());
}

}  // namespace rpc
