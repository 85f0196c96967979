// tests/faults/failing_disk.cc: replaces system calls by ones that fail, in a program that is
// linked with it. FAILING_DISK="write /checkpoints/ 5" makes every write to a path with that part
// fail with error number 5 (EIO). With -3000 in its place, each takes 3 seconds longer, as on a
// busy disk. The calls are read, write, fsync, rename, mkdir and flock.
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace {

// Returns the error number of this call for this path. 0: it does not fail.
int errorOf(const char* call, const char* path) {
  auto setting = getenv("FAILING_DISK");
  char failing[16], part[256];
  int error;
  if (setting == nullptr || sscanf(setting, "%15s %255s %d", failing, part, &error) != 3) return 0;
  return strcmp(call, failing) == 0 && strstr(path, part) != nullptr ? error : 0;
}

int errorOf(const char* call, int fd) {
  if (getenv("FAILING_DISK") == nullptr) return 0;
  char link[64], path[4096];
  snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
  auto length = readlink(link, path, sizeof(path) - 1);
  if (length < 0) return 0;
  path[length] = 0;
  return errorOf(call, path);
}

bool fails(int error) {
  if (error < 0) poll(nullptr, 0, -error);
  if (error > 0) errno = error;
  return error > 0;
}

}  // namespace

extern "C" {

ssize_t read(int fd, void* bytes, size_t size) {
  if (fails(errorOf("read", fd))) return -1;
  return syscall(SYS_read, fd, bytes, size);
}

ssize_t pread(int fd, void* bytes, size_t size, off_t offset) {
  if (fails(errorOf("read", fd))) return -1;
  return syscall(SYS_pread64, fd, bytes, size, offset);
}

ssize_t write(int fd, const void* bytes, size_t size) {
  if (fails(errorOf("write", fd))) return -1;
  return syscall(SYS_write, fd, bytes, size);
}

int fsync(int fd) {
  if (fails(errorOf("fsync", fd))) return -1;
  return int(syscall(SYS_fsync, fd));
}

int flock(int fd, int operation) noexcept {
  if (fails(errorOf("flock", fd))) return -1;
  return int(syscall(SYS_flock, fd, operation));
}

int rename(const char* from, const char* to) noexcept {
  if (fails(errorOf("rename", to))) return -1;
  return int(syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0));
}

int mkdir(const char* path, mode_t mode) noexcept {
  if (fails(errorOf("mkdir", path))) return -1;
  return int(syscall(SYS_mkdirat, AT_FDCWD, path, mode));
}
}
