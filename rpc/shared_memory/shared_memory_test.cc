#include "rpc/shared_memory/shared_memory.h"

#include <doctest/doctest.h>
#include <errno.h>
#include <fcntl.h>
#include <kj/debug.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>

namespace rpc {
namespace {

constexpr uint64_t BYTES = 3 * 4096;

kj::String refusal(int descriptor, uint64_t bytes) {
  KJ_IF_MAYBE(exception, kj::runCatchingExceptions([&]() {
                SharedMemory::map(descriptor, bytes, SharedMemory::WRITE);
              })) {
    return kj::str(exception->getDescription());
  }
  return kj::str();
}

bool contains(kj::StringPtr text, kj::StringPtr part) {
  return strstr(text.cStr(), part.cStr()) != nullptr;
}

// Memory as another process would make it.
kj::AutoCloseFd newFile(int seals) {
  int raw;
  KJ_SYSCALL(raw = ::memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  kj::AutoCloseFd file(raw);
  KJ_SYSCALL(::ftruncate(file, BYTES));
  if (seals != 0) {
    KJ_SYSCALL(::fcntl(file, F_ADD_SEALS, seals));
  }
  return file;
}

TEST_CASE("SharedMemory: one mapping reads the bytes that the other writes") {
  auto ours = SharedMemory::create(BYTES, SharedMemory::WRITE);
  auto theirs = SharedMemory::map(ours->descriptor(), BYTES, SharedMemory::WRITE);
  CHECK(theirs->bytes().size() == BYTES);
  CHECK(theirs->bytes().begin() != ours->bytes().begin());
  CHECK(theirs->bytes()[BYTES - 1] == 0);
  ours->bytes()[BYTES - 1] = 7;
  theirs->bytes()[0] = 8;
  CHECK(theirs->bytes()[BYTES - 1] == 7);
  CHECK(ours->bytes()[0] == 8);
}

TEST_CASE("SharedMemory: others cannot write to read-only memory, and nobody can resize it") {
  auto ours = SharedMemory::create(BYTES, SharedMemory::READ);
  CHECK(contains(refusal(ours->descriptor(), BYTES), "cannot map"));
  auto theirs = SharedMemory::map(ours->descriptor(), BYTES, SharedMemory::READ);
  ours->bytes()[5] = 9;
  CHECK(theirs->bytes()[5] == 9);
  CHECK(::ftruncate(ours->descriptor(), 0) == -1);
  CHECK(errno == EPERM);
}

TEST_CASE("SharedMemory: memory of another size, or whose size may change, is refused") {
  auto ours = SharedMemory::create(BYTES, SharedMemory::WRITE);
  CHECK(contains(refusal(ours->descriptor(), BYTES - 4096), "another size than agreed"));
  CHECK(contains(refusal(ours->descriptor(), BYTES + 4096), "another size than agreed"));
  CHECK(contains(refusal(newFile(0), BYTES), "sealed against a change"));
  CHECK(contains(refusal(newFile(F_SEAL_SHRINK), BYTES), "sealed against a change"));
  CHECK(contains(refusal(newFile(F_SEAL_GROW), BYTES), "sealed against a change"));
  CHECK(refusal(newFile(F_SEAL_SHRINK | F_SEAL_GROW), BYTES) == "");
  int ends[2];
  KJ_SYSCALL(::pipe2(ends, O_CLOEXEC));
  kj::AutoCloseFd in(ends[0]), out(ends[1]);
  CHECK(contains(refusal(in, BYTES), "sealed against a change"));
}

}  // namespace
}  // namespace rpc
