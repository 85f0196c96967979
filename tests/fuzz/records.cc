// A damaged database of records: any bytes, or edits of an intact database. The checksums of its
// records may be corrected after the edits.
#include "io/records/record_db.h"

#include <string.h>

#include "io/images/jpeg.h"
#include "io/images/pixels.h"
#include "io/records/record_format.h"
#include "tests/fuzz/fuzz.h"

namespace fuzz {
namespace {

constexpr uint SMALL = 40;  // records that share pages
constexpr size_t DATABASE_BYTES_MAX = 1 << 16;

// A database of several levels: small records, a JPEG file, and one that has separate pages.
kj::Array<kj::byte> newDatabase() {
  auto path = kj::str(folder(), "/whole.mdb");
  auto writer = io::RecordWriter::create(path);
  auto add = [&](uint64_t id, io::ImageShape shape, io::Encoding encoding) {
    auto pixels = kj::heapArray<kj::byte>(shape.size());
    memset(pixels.begin(), int(id), pixels.size());
    io::ImageView image{shape, io::Layout::PLANES, pixels};
    auto bytes = encoding == io::Encoding::JPEG ? io::encodeJpeg(image) : kj::mv(pixels);
    writer->add(id % 3, id, encoding, shape, bytes, kj::str("cat/", id, ".jpg"));
  };
  for (uint64_t id = 0; id < SMALL; id++) add(id, {3, 8, 8}, io::Encoding::RAW);
  add(SMALL, {3, 8, 8}, io::Encoding::JPEG);
  add(SMALL + 1, {3, 40, 40}, io::Encoding::RAW);
  writer->finish({"image_folder"});
  auto bytes = contentOf(path);
  must(bytes.size() <= DATABASE_BYTES_MAX, "a place takes 2 bytes");
  return bytes;
}

// Corrects the checksums of all records and of the description, wherever they are.
void mendChecksums(kj::ArrayPtr<kj::byte> file) {
  for (size_t at = 0; at + sizeof(io::Description) <= file.size(); at += 2) {
    auto begin = file.begin() + at;
    if (memcmp(begin, "RDES", 4) == 0) {
      io::Description description;
      memcpy(&description, begin, sizeof(description));
      description.crc = io::checksum(description);
      memcpy(begin, &description, sizeof(description));
    } else if (memcmp(begin, "RREC", 4) == 0) {
      io::RecordHeader header;
      memcpy(&header, begin, sizeof(header));
      auto rest = file.slice(at + sizeof(header), file.size());
      header.crc = io::checksum(header, rest.slice(0, kj::min(rest.size(), header.size)));
      memcpy(begin, &header, sizeof(header));
    }
  }
}

void readAll(const io::RecordDb& db) {
  auto reader = io::RecordReader::open(db);
  io::JpegDecoder decoder;
  db.dataset();
  db.shape();
  for (uint64_t i = 0; i < kj::min(db.count(), 2 * SMALL); i++) {
    reader->prefetch(i + 1);
    refusalOf([&]() {
      auto record = reader->read(i);
      auto image = io::pixelsOf(record, decoder);
      must(image.bytes.size() == image.shape.size(), "pixels");
      must(record.label < db.classes(), "label");
      must(db.shape().orDefault(record.shape) == record.shape, "shape");
      io::toPlanes(image);
    });
    io::nameOfRecord(db, i, i);
  }
  if (db.count() > 0) refusalOf([&]() { reader->read(db.count() - 1); });
  io::Progress progress = io::unheard();
  refusalOf([&]() { io::meanImageOf(db, io::BadRecordPolicy::SKIP, progress); });
}

}  // namespace

void feed(Bytes input) {
  static const kj::Array<kj::byte> WHOLE = newDatabase();
  Dice dice(input);
  uint8_t choice = dice.byte();
  auto file = kj::heapArray<kj::byte>(choice & 1 ? dice.all() : WHOLE.asPtr());
  edit(file, dice);
  if (choice & 2) mendChecksums(file);
  auto db = io::RecordDb::open(fileOf("damaged.mdb", file));
  readAll(*db);
}

}  // namespace fuzz
