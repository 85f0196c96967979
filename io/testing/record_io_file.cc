#include "io/testing/record_io_file.h"

#include <cstring>

namespace io {

namespace {

constexpr uint32_t MAGIC = 0xced7230a;

template <typename T>
void put(kj::Vector<kj::byte>& to, T number) {
  kj::byte bytes[sizeof(number)];
  memcpy(bytes, &number, sizeof(number));
  to.addAll(bytes, bytes + sizeof(number));
}

void putPart(kj::Vector<kj::byte>& to, uint32_t kind, kj::ArrayPtr<const kj::byte> part) {
  put(to, MAGIC);
  put(to, kind << 29 | uint32_t(part.size()));
  to.addAll(part);
  while (to.size() % 4 != 0) to.add(0);
}

}  // namespace

kj::Array<kj::byte> recordIoOf(kj::ArrayPtr<const RecordIoImage> images) {
  kj::Vector<kj::byte> file;
  for (auto& image: images) {
    kj::Vector<kj::byte> record;
    put(record, uint32_t(image.labels.size()));
    put(record, image.label);
    put(record, uint64_t(0));
    put(record, uint64_t(0));
    for (auto label: image.labels) put(record, label);
    record.addAll(image.file);
    // Where the record has the magic number, it is divided.
    size_t begin = 0;
    auto rest = [&](size_t end) { return record.asPtr().slice(begin, end); };
    for (size_t at = 0; at + sizeof(MAGIC) <= record.size(); at += sizeof(MAGIC)) {
      if (memcmp(record.begin() + at, &MAGIC, sizeof(MAGIC)) != 0) continue;
      putPart(file, begin == 0 ? 1 : 2, rest(at));
      begin = at + sizeof(MAGIC);
    }
    putPart(file, begin == 0 ? 0 : 3, rest(record.size()));
  }
  return file.releaseAsArray();
}

}  // namespace io
