// The file holds C×H×W float32 in little-endian order, then the 32 bytes of the SHA-256 over the
// digest of the training records and these numbers. Older programs wrote only the numbers. Such a
// file is not trusted, and is written again.

#include "io/images/mean_file.h"

#include <fcntl.h>
#include <kj/io.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "configs/language/failure.h"
#include "io/checksum.h"
#include "io/images/pixels.h"
#include "io/paths.h"

namespace io {

namespace {

constexpr size_t SUM_BYTES = 32;
constexpr size_t FILE_BYTES_MAX = size_t(1) << 30;

kj::Array<kj::byte> sumOf(const RecordDb& training, kj::ArrayPtr<const float> mean) {
  Sha256 sum;
  sum.update(training.digest());
  sum.update(mean.asBytes());
  return sum.finish();
}

[[noreturn]] void refuse(kj::StringPtr path, kj::StringPtr cause) {
  configs::fail("cannot use the mean image ", path, ": ", cause,
      ". Delete it, and the next run computes it again");
}

// Returns the content of `path`. Null if an older program wrote it.
kj::Maybe<kj::Array<float>> readMean(
    kj::StringPtr path, const RecordDb& training, ImageShape shape) {
  auto bytes = readFile(path, FILE_BYTES_MAX);
  size_t size = shape.size() * sizeof(float);
  if (bytes.size() == size) return nullptr;
  if (bytes.size() != size + SUM_BYTES) {
    refuse(path, kj::str("it has ", bytes.size(), " bytes, not ", size + SUM_BYTES));
  }
  auto mean = kj::heapArray<float>(shape.size());
  memcpy(mean.begin(), bytes.begin(), size);
  if (bytes.slice(size, bytes.size()) != sumOf(training, mean)) {
    refuse(path, "its checksum is wrong, so it is damaged or belongs to other records");
  }
  return kj::mv(mean);
}

// Each process writes the same bytes to a file with a different name, and renames it.
void writeMean(kj::StringPtr path, const RecordDb& training, kj::ArrayPtr<const float> mean) {
  auto part = kj::str(path, ".part-", ::getpid(), "-", ::gettid());
  int fd = ::open(part.cStr(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (fd < 0) {
    // For a read-only folder, this only costs a second at the next start.
    if (errno == EACCES || errno == EROFS || errno == EPERM) return;
    configs::fail(path, " cannot be made: ", strerror(errno));
  }
  kj::AutoCloseFd owned(fd);
  KJ_ON_SCOPE_FAILURE(::unlink(part.cStr()));
  about(path, [&]() {
    writeTo(fd, mean.asBytes());
    writeTo(fd, sumOf(training, mean));
    syncToDisk(fd);
  });
  moveIntoPlace(part, path);
}

}  // namespace

kj::Array<float> loadMeanImage(const DataConfig& config, const RecordDb& training,
    kj::StringPtr folder, ImageShape shape, Progress& progress, Warn& warn) {
  auto path = kj::str(folder, "/", MEAN_FILE);
  auto kind = pathKind(path);
  // Without this error, the mean would be computed at each start and never kept.
  if (kind == PathKind::FOLDER) refuse(path, "it is a folder");
  KJ_IF_MAYBE(why, whyNeither(path)) refuse(path, kj::str("it is ", *why));
  if (kind == PathKind::FILE) {
    KJ_IF_MAYBE(mean, readMean(path, training, shape)) return kj::mv(*mean);
  }
  auto mean = meanImageOf(training, config.onBadRecord, progress, config.names.skip);
  KJ_IF_MAYBE(e, kj::runCatchingExceptions([&]() { writeMean(path, training, mean); })) {
    warn(kj::str("the mean image was not stored: ", e->getDescription()));
  }
  return mean;
}

}  // namespace io
