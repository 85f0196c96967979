#include "io/datasets/record_io.h"

#include <fcntl.h>
#include <kj/debug.h>
#include <kj/io.h>
#include <kj/vector.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <cstring>

#include "configs/language/failure.h"
#include "io/images/jpeg.h"
#include "io/images/png.h"
#include "io/records/record_db.h"

namespace io {

namespace {

constexpr uint32_t MAGIC = 0xced7230a;
constexpr uint SIZE_BITS = 29;

struct PartHeader {
  uint32_t magic;
  uint32_t kindAndSize;

  enum Kind : uint32_t { WHOLE, FIRST, MIDDLE, LAST };
  Kind kind() const { return Kind(kindAndSize >> SIZE_BITS); }
  uint32_t size() const { return kindAndSize & ((1u << SIZE_BITS) - 1); }
};
static_assert(sizeof(PartHeader) == 8);

struct ImageHeader {
  uint32_t labels;
  float label;
  uint64_t ids[2];
};
static_assert(sizeof(ImageHeader) == 24);

// The beginning of an image file, by which its format is known.
constexpr size_t FORMAT_BYTES = 8;

uint64_t padded(uint64_t size) {
  return (size + 3) / 4 * 4;
}

class RecordIoMembers final: public Members {
public:
  explicit RecordIoMembers(kj::StringPtr path): path(kj::str(path)) {
    int fd = ::open(path.cStr(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) configs::fail("cannot open ", path, ": ", strerror(errno));
    file = kj::AutoCloseFd(fd);
    struct stat status;
    KJ_SYSCALL(::fstat(fd, &status));
    size = status.st_size;
  }

  kj::Maybe<kj::StringPtr> next() override {
    position = end;
    if (position == size) return nullptr;
    findParts();
    ImageHeader header;
    size_t begin = sizeof(header);
    auto head = record(begin + sizeof(float) + FORMAT_BYTES);
    if (head.size() < begin) refuse("is shorter than its header");
    memcpy(&header, head.begin(), sizeof(header));
    float label = header.label;
    if (header.labels > 1) {
      configs::fail(path, " has ", header.labels, " labels for record ", count,
          ". Only images with one label can be trained on");
    }
    if (header.labels == 1) {
      if (head.size() < begin + sizeof(label)) refuse("is shorter than its label");
      memcpy(&label, head.begin() + begin, sizeof(label));
      begin += sizeof(label);
    }
    if (!(label >= 0 && label <= float(LABEL_MAX)) || label != std::floor(label)) {
      configs::fail(path, " has the label ", label, " for record ", count,
          ". A class is a whole number from 0 to ", LABEL_MAX);
    }
    number = uint32_t(label);
    imageAt = begin;
    auto image = head.slice(begin, head.size());
    name = kj::str(count++, isJpeg(image) ? ".jpg" : isPng(image) ? ".png" : ".bin");
    return kj::StringPtr(name);
  }

  kj::Maybe<uint32_t> label() const override { return number; }

  kj::Array<kj::byte> read(size_t bytesMax) override {
    uint64_t bytes = 0;
    for (auto& part: parts) bytes += part.size;
    if (bytes > bytesMax) configs::fail("has more than the allowed ", bytesMax, " bytes");
    auto all = record(kj::maxValue);
    return kj::heapArray(all.slice(kj::min(imageAt, all.size()), all.size()));
  }

  const LeftOut& notRegular() const override { return none; }
  const LeftOut& hidden() const override { return none; }
  const LeftOut& unreadable() const override { return none; }
  const LeftOut& empty() const override { return none; }
  uint64_t done() const override { return end; }
  uint64_t total() const override { return size; }

private:
  struct Part {
    uint64_t offset;
    uint32_t size;
  };

  [[noreturn]] void refuse(kj::StringPtr cause) {
    configs::fail("cannot read ", path, ": record ", count, ", at byte ", position, ", ", cause,
        ". The file may be incomplete: get it again");
  }

  // Finds the parts of the record that begins at `position`, and where it ends.
  void findParts() {
    parts.clear();
    for (end = position;;) {
      PartHeader header;
      if (readAt(end, kj::arrayPtr(reinterpret_cast<kj::byte*>(&header), sizeof(header))) <
          sizeof(header)) {
        refuse("is cut short");
      }
      if (header.magic != MAGIC) refuse("does not begin as a record does");
      bool isFirst = parts.size() == 0;
      bool begins = header.kind() == PartHeader::WHOLE || header.kind() == PartHeader::FIRST;
      if (isFirst != begins || header.kind() > PartHeader::LAST) refuse("has parts in wrong order");
      parts.add(Part{end + sizeof(header), header.size()});
      end += sizeof(header) + padded(header.size());
      if (end > size) refuse("is cut short");
      if (header.kind() == PartHeader::WHOLE || header.kind() == PartHeader::LAST) return;
    }
  }

  // Returns the first bytes of the record, at most `bytesMax`.
  kj::Array<kj::byte> record(size_t bytesMax) {
    kj::Vector<kj::byte> bytes;
    for (auto& part: parts) {
      if (bytes.size() > 0) {
        kj::byte magic[sizeof(MAGIC)];
        memcpy(magic, &MAGIC, sizeof(MAGIC));
        bytes.addAll(magic, magic + sizeof(MAGIC));
      }
      if (bytes.size() >= bytesMax) break;
      size_t begin = bytes.size();
      size_t wanted = kj::min(part.size, bytesMax - begin);
      bytes.resize(begin + wanted);
      if (readAt(part.offset, bytes.asPtr().slice(begin, begin + wanted)) < wanted) {
        refuse("is cut short");
      }
    }
    return bytes.releaseAsArray();
  }

  // Returns how many bytes there are.
  size_t readAt(uint64_t offset, kj::ArrayPtr<kj::byte> to) {
    size_t done = 0;
    while (done < to.size()) {
      auto n = ::pread(file, to.begin() + done, to.size() - done, offset + done);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) configs::fail("cannot read ", path, ": ", strerror(errno));
      if (n == 0) break;
      done += n;
    }
    return done;
  }

  const kj::String path;
  kj::AutoCloseFd file;
  uint64_t size = 0;
  uint64_t position = 0;  // of the record that next() returned
  uint64_t end = 0;       // of that record
  uint64_t count = 0;     // of records so far
  kj::Vector<Part> parts;
  size_t imageAt = 0;
  uint32_t number = 0;
  kj::String name;
  LeftOut none;
};

}  // namespace

bool isRecordIo(kj::StringPtr path) {
  int fd = ::open(path.cStr(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  kj::AutoCloseFd file(fd);
  uint32_t begin = 0;
  return ::pread(fd, &begin, sizeof(begin), 0) == sizeof(begin) && begin == MAGIC;
}

kj::Own<Members> openRecordIo(kj::StringPtr path) {
  return kj::heap<RecordIoMembers>(path);
}

}  // namespace io
