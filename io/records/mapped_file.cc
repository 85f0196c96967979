#include "io/records/mapped_file.h"

#include <fcntl.h>
#include <kj/debug.h>
#include <kj/io.h>
#include <kj/mutex.h>
#include <kj/vector.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>

#include "configs/language/failure.h"
#include "configs/language/printable.h"

namespace io {

namespace {

// A mapped file in the list of the signal handler. The list only grows, because the handler may
// read it at any time.
struct Mapping {
  std::atomic<uintptr_t> begin = 0;
  std::atomic<size_t> size = 0;  // 0: not in use, and free for another file
  kj::String words;
  Mapping* next = nullptr;
};

std::atomic<Mapping*> first = nullptr;
struct sigaction before;

void onBusError(int, siginfo_t* info, void*) {
  static std::atomic_flag said;
  auto address = reinterpret_cast<uintptr_t>(info->si_addr);
  auto each = info->si_code == BUS_ADRERR ? first.load() : nullptr;
  for (; each != nullptr; each = each->next) {
    if (address < each->begin || address - each->begin >= each->size) continue;
    // Several threads may have this error at the same time. Only one prints it.
    while (said.test_and_set()) ::pause();
    (void)!::write(STDERR_FILENO, each->words.begin(), each->words.size());
    ::_exit(1);
  }
  // When the handler returns, the processor repeats the access. A signal from another process is
  // not repeated.
  ::sigaction(SIGBUS, &before, nullptr);
  if (info->si_code <= 0) ::raise(SIGBUS);
}

// Locked during each change of the list.
kj::MutexGuarded<kj::Vector<kj::Own<Mapping>>> mappings;

void handleBusErrors() {
  struct sigaction action = {};
  action.sa_sigaction = &onBusError;
  action.sa_flags = SA_SIGINFO;
  KJ_SYSCALL(::sigaction(SIGBUS, &action, &before));
}

Mapping& watch(const void* begin, size_t size, kj::StringPtr lost) {
  auto lock = mappings.lockExclusive();
  if (lock->size() == 0) handleBusErrors();
  auto mapping = first.load();
  while (mapping != nullptr && mapping->size > 0) mapping = mapping->next;
  if (mapping == nullptr) {
    mapping = lock->add(kj::heap<Mapping>());
    mapping->next = first;
    first = mapping;
  }
  // The error is on its own line, even after an unfinished progress line.
  mapping->words = kj::str("\nerror: ", configs::printable(lost), "\n");
  mapping->begin = reinterpret_cast<uintptr_t>(begin);
  mapping->size = size;
  return *mapping;
}

void forget(Mapping& mapping) {
  auto lock = mappings.lockExclusive();
  mapping.size = 0;
}

kj::AutoCloseFd openToRead(kj::StringPtr path) {
  // Opening a FIFO would wait for its writer.
  int fd = ::open(path.cStr(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) configs::fail("it cannot be opened: ", strerror(errno));
  return kj::AutoCloseFd(fd);
}

}  // namespace

kj::Array<const kj::byte> mapFile(kj::StringPtr path, kj::StringPtr lost) {
  auto fd = openToRead(path);
  struct stat status;
  KJ_SYSCALL(::fstat(fd, &status));
  if (!S_ISREG(status.st_mode)) configs::fail("it is not a regular file");
  if (status.st_size == 0) configs::fail("the file is empty");
  void* bytes = ::mmap(nullptr, status.st_size, PROT_READ, MAP_SHARED, fd, 0);
  if (bytes == MAP_FAILED) configs::fail("it cannot be mapped: ", strerror(errno));
  auto& mapping = watch(bytes, status.st_size, lost);
  return kj::arrayPtr(static_cast<const kj::byte*>(bytes), status.st_size)
      .attach(kj::defer([bytes, &mapping, size = status.st_size]() {
        forget(mapping);
        ::munmap(bytes, size);
      }));
}

}  // namespace io
