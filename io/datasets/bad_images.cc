#include "io/datasets/bad_images.h"

#include <fcntl.h>
#include <kj/io.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <sstream>
#include <string>

#include "configs/language/failure.h"
#include "io/paths.h"

namespace io {

namespace {

constexpr size_t FILE_BYTES_MAX = size_t(1) << 30;

}  // namespace

BadImages::BadImages(kj::StringPtr folder): path(kj::str(folder, "/", BAD_IMAGES_FILE)) {
  if (pathKind(path) != PathKind::FILE) return;
  auto bytes = readFile(path, FILE_BYTES_MAX);
  std::istringstream text(std::string(bytes.asChars().begin(), bytes.size()));
  // The last line may lack its end, if the process was killed while it wrote it, or the disk was
  // full. The next line must not follow it.
  size_t whole = bytes.size();
  while (whole > 0 && bytes[whole - 1] != '\n') --whole;
  if (whole < bytes.size() && ::truncate(path.cStr(), whole) != 0) {
    configs::fail("cannot write ", path, ": ", strerror(errno));
  }
  for (std::string line; std::getline(text, line) && !text.eof();) {
    char* end;
    uint64_t number = std::strtoull(line.c_str(), &end, 10);
    if (*end == ' ') reasons.upsert(number, kj::str(end + 1), [](kj::String&, kj::String&&) {});
  }
}

kj::Maybe<kj::StringPtr> BadImages::find(uint64_t number) const {
  KJ_IF_MAYBE(reason, reasons.find(number)) return kj::StringPtr(*reason);
  return nullptr;
}

void BadImages::add(uint64_t number, kj::StringPtr reason) {
  auto line = replaced(reason, "\n", " ");
  int fd = ::open(path.cStr(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (fd < 0) configs::fail("cannot make ", path, ": ", strerror(errno));
  kj::AutoCloseFd file(fd);
  about(path, [&]() { writeTo(fd, kj::str(number, " ", line, "\n").asBytes()); });
  reasons.upsert(number, kj::mv(line), [](kj::String&, kj::String&&) {});
}

}  // namespace io
