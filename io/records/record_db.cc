#include "io/records/record_db.h"

#include <kj/debug.h>
#include <kj/vector.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "configs/language/failure.h"
#include "io/checksum.h"
#include "io/records/lmdb_file.h"
#include "io/records/record_format.h"

namespace io {

namespace {

constexpr kj::StringPtr WAY_OUT =
    ". Delete this file only if it lies in the cache of records: then the next run imports the "
    "data again. If pack_records wrote it, pack again"_kj;

// Whether an image may have this shape. Its size does not overflow then.
bool isShape(ImageShape shape) {
  return shape.channels > 0 && shape.channels <= 255 && shape.height > 0 && shape.width > 0 &&
         uint64_t(shape.height) * shape.width <= IMAGE_PIXELS_MAX;
}

class LmdbRecordDb final: public RecordDb {
public:
  explicit LmdbRecordDb(kj::StringPtr path): name(kj::str(path)) {
    if (::access(path.cStr(), R_OK) != 0) {
      bool mayNot = errno == EACCES;
      configs::fail("cannot open the record database ", path, ": ", strerror(errno),
          mayNot ? ". Check the permissions of the file and its folder" : "");
    }
    KJ_IF_MAYBE(e, kj::runCatchingExceptions([&]() {
                  file.emplace(path,
                      kj::str("the record database ", path,
                          " can no longer be read: it was cut short, or its disk failed", WAY_OUT));
                  readDescription();
                })) {
      configs::fail("cannot open the record database ", path, ": ", e->getDescription(), WAY_OUT);
    }
  }

  uint64_t count() const override { return description.count; }
  uint classes() const override { return description.classes; }
  kj::Maybe<ImageShape> shape() const override {
    if (description.channels == 0) return nullptr;
    return ImageShape{description.channels, description.height, description.width};
  }
  kj::ArrayPtr<const kj::byte> digest() const override { return description.digest; }
  kj::StringPtr path() const override { return name; }
  kj::Maybe<kj::StringPtr> dataset() const override {
    return datasetName.map([](const kj::String& text) -> kj::StringPtr { return text; });
  }

  kj::ArrayPtr<const kj::String> classNames() const override { return names; }
  kj::StringPtr origin() const override { return originText; }

  kj::Maybe<kj::String> source(uint64_t index) const override {
    kj::Maybe<kj::String> found;
    // The error that the caller reports is worse than an unreadable name.
    KJ_IF_MAYBE(e, kj::runCatchingExceptions([&]() {
                  KJ_IF_MAYBE(bytes, pages().find(PATH_KEYS + index)) {
                    found = kj::heapString(bytes->asChars());
                  }
                })) {
      return nullptr;
    }
    return found;
  }

  const LmdbFile& pages() const { return KJ_ASSERT_NONNULL(file); }

private:
  void readDescription() {
    KJ_IF_MAYBE(value, pages().find(DESCRIPTION_KEY)) {
      if (value->size() == sizeof(description) && memcmp(value->begin(), "RDES", 4) == 0) {
        memcpy(&description, value->begin(), sizeof(description));
        if (description.version != RECORD_VERSION) {
          configs::fail("it was written by another version of this program");
        }
        if (description.crc != checksum(description)) configs::fail("its description is damaged");
        auto common = shape();
        if (common != nullptr && !isShape(KJ_ASSERT_NONNULL(common))) {
          configs::fail("its images cannot have ", description.channels, "×", description.height,
              "×", description.width, " values");
        }
        if (description.count > pages().size_bytes() / sizeof(RecordHeader)) {
          configs::fail("it is too small for ", description.count, " records");
        }
        if (description.classes > LABEL_MAX + 1) {
          configs::fail(
              "it has ", description.classes, " classes, and there are at most ", LABEL_MAX + 1);
        }
        KJ_IF_MAYBE(bytes, pages().find(DATASET_KEY)) {
          datasetName = kj::heapString(bytes->asChars());
        }
        KJ_IF_MAYBE(bytes, pages().find(ORIGIN_KEY)) {
          originText = kj::heapString(bytes->asChars());
        }
        readClassNames();
        return;
      }
    }
    configs::fail("it contains something else, or is not finished");
  }

  void readClassNames() {
    KJ_IF_MAYBE(bytes, pages().find(CLASSES_KEY)) {
      kj::Vector<kj::String> lines;
      for (auto rest = bytes->asChars();;) {
        size_t end = std::find(rest.begin(), rest.end(), '\n') - rest.begin();
        lines.add(kj::heapString(rest.slice(0, end)));
        if (lines.size() > LABEL_MAX + 1) configs::fail("it has names of too many classes");
        if (end == rest.size()) break;
        rest = rest.slice(end + 1, rest.size());
      }
      names = lines.releaseAsArray();
    }
  }

  kj::String name;
  kj::Maybe<LmdbFile> file;
  Description description;
  kj::Maybe<kj::String> datasetName;
  kj::Array<kj::String> names;
  kj::String originText;
};

class LmdbRecordReader final: public RecordReader {
public:
  explicit LmdbRecordReader(const LmdbRecordDb& db): db(db) {}

  Record read(uint64_t index) override {
    KJ_REQUIRE(index < db.count(), "there are fewer records", db.path(), index, db.count());
    kj::Maybe<uint64_t> id;
    auto refuse = [&](kj::StringPtr cause) {
      configs::fail(badRecord(db, index, id, cause), WAY_OUT);
    };
    kj::ArrayPtr<const kj::byte> value;
    KJ_IF_MAYBE(e, kj::runCatchingExceptions([&]() {
                  KJ_IF_MAYBE(place, placeOf(index)) {
                    value = db.pages().valueAt(*place);
                  } else {
                    configs::fail("it is missing");
                  }
                })) {
      refuse(e->getDescription());
    }
    RecordHeader header;
    if (value.size() < sizeof(header)) refuse("it is shorter than its header");
    memcpy(&header, value.begin(), sizeof(header));
    auto payload = value.slice(sizeof(header), value.size());
    if (memcmp(header.magic, "RREC", 4) != 0 || header.version != RECORD_VERSION ||
        header.encoding > uint8_t(Encoding::JPEG) || header.size != payload.size()) {
      refuse("its header is wrong");
    }
    // Before the checksum is verified, the id may be wrong. It is probably right, because damage is
    // more likely in the pixels than in the small header.
    id = header.id;
    if (header.crc != checksum(header, payload)) refuse("its checksum is wrong");
    // A record with a correct checksum may still have invalid values.
    ImageShape shape = {header.channels, header.height, header.width};
    if (!isShape(shape)) refuse("an image cannot have the size in its header");
    bool isJpeg = header.encoding == uint8_t(Encoding::JPEG);
    if (!isJpeg && shape.size() != payload.size()) refuse("its size is not that of its pixels");
    if (isJpeg && shape.channels != 1 && shape.channels != 3) {
      refuse("it is a JPEG file, but its header gives neither 1 nor 3 channels");
    }
    if (!(db.shape().orDefault(shape) == shape))
      refuse("its image has another size than all others");
    if (header.label >= db.classes()) refuse("its label is larger than all others");
    return {header.label, header.id, static_cast<Encoding>(header.encoding), shape, payload};
  }

  void prefetch(uint64_t index) override {
    found[0] = found[1];
    found[1].index = kj::maxValue;
    kj::runCatchingExceptions([&]() {
      found[1] = {index, db.pages().placeOf(index)};
      KJ_IF_MAYBE(place, found[1].place) db.pages().prefetch(*place);
    });
  }

private:
  struct Found {
    uint64_t index = kj::maxValue;
    kj::Maybe<LmdbFile::Place> place;
  };

  kj::Maybe<LmdbFile::Place> placeOf(uint64_t index) const {
    for (auto& each: found) {
      if (each.index == index) return each.place;
    }
    return db.pages().placeOf(index);
  }

  const LmdbRecordDb& db;
  Found found[2];  // by the last calls of prefetch()
};

}  // namespace

kj::Own<RecordDb> RecordDb::open(kj::StringPtr path) {
  return kj::heap<LmdbRecordDb>(path);
}

kj::Own<RecordReader> RecordReader::open(const RecordDb& db) {
  return kj::heap<LmdbRecordReader>(kj::downcast<const LmdbRecordDb>(db));
}

bool hasItsDigest(const RecordDb& db, Progress& progress) {
  auto& pages = kj::downcast<const LmdbRecordDb>(db).pages();
  Sha256 sum;
  for (uint64_t i = 0; i < db.count(); ++i) {
    if (i % RECORDS_PER_REPORT == 0) progress("adding up records", i, db.count());
    kj::ArrayPtr<const kj::byte> value;
    bool isThere =
        kj::runCatchingExceptions([&]() { value = KJ_ASSERT_NONNULL(pages.find(i)); }) == nullptr;
    if (!isThere) return false;
    sum.update(value);
  }
  return sum.finish().asPtr() == db.digest();
}

kj::String nameOfRecord(const RecordDb& db, uint64_t index, kj::Maybe<uint64_t> id) {
  kj::String image;
  KJ_IF_MAYBE(path, db.source(index)) {
    image = kj::str(" (", *path, ")");
  } else KJ_IF_MAYBE(i, id) {
    image = kj::str(" (image ", *i, " of the source, counted from 0)");
  }
  return kj::str("record ", index, image, " of ", db.path());
}

kj::String badRecord(
    const RecordDb& db, uint64_t index, kj::Maybe<uint64_t> id, kj::StringPtr cause) {
  return kj::str(nameOfRecord(db, index, id), " is bad: ", cause);
}

}  // namespace io
