#include "runner/system/growing_files.h"

#include <errno.h>
#include <fcntl.h>
#include <kj/io.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "configs/language/failure.h"
#include "io/checksum.h"
#include "runner/system/files.h"

namespace runner {

uint64_t bytesOf(kj::ArrayPtr<const FileExtent> extents, kj::StringPtr name) {
  for (auto& extent: extents) {
    if (extent.name == name) return extent.bytes;
  }
  return 0;
}

GrowingFiles::Known& GrowingFiles::known(kj::StringPtr name) {
  return files.findOrCreate(name, [&]() {
    return kj::HashMap<kj::String, Known>::Entry{kj::str(name), {}};
  });
}

void GrowingFiles::sync(kj::StringPtr name) {
  auto path = kj::str(folder, "/", name);
  struct stat facts = {};
  if (::stat(path.cStr(), &facts) != 0 && errno == ENOENT) return;
  auto& file = known(name);
  if (file.isUnsure) writeAgain(path, file.synced_bytes);
  file.isUnsure = true;
  syncPath(path);
  file.isUnsure = false;
  file.synced_bytes = facts.st_size;
}

void GrowingFiles::forgetSumOf(kj::StringPtr name) {
  auto& file = known(name);
  file.bytes = file.crc32 = 0;
}

uint32_t GrowingFiles::sumOf(kj::StringPtr name, uint64_t bytes, kj::StringPtr what) {
  auto& known = this->known(name);
  if (bytes < known.bytes) known.bytes = known.crc32 = 0;
  auto fail = [&](auto&&... why) { configs::fail(what, " ", why...); };
  int raw = ::open(kj::str(folder, "/", name).cStr(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (raw < 0) fail("cannot be read: ", strerror(errno));
  kj::AutoCloseFd fd(raw);
  struct stat facts;
  if (::fstat(fd, &facts) != 0) fail("cannot be read: ", strerror(errno));
  if (!S_ISREG(facts.st_mode)) fail("is not a regular file");
  if (uint64_t(facts.st_size) < bytes) fail("is cut short");
  auto chunk = kj::heapArray<kj::byte>(kj::min(bytes - known.bytes, uint64_t(1) << 20));
  while (known.bytes < bytes) {
    auto wanted = kj::min(chunk.size(), bytes - known.bytes);
    ssize_t count = ::pread(fd, chunk.begin(), wanted, known.bytes);
    if (count < 0) fail("cannot be read: ", strerror(errno));
    if (count == 0) fail("is cut short");
    known.crc32 = io::crc32(chunk.slice(0, count), known.crc32);
    known.bytes += count;
  }
  return known.crc32;
}

}  // namespace runner
