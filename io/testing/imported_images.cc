#include "io/testing/imported_images.h"

#include <kj/debug.h>
#include <stdlib.h>
#include <unistd.h>

#include "io/datasets/import_folder.h"

namespace io {

void Images::writeClasses(uint count) {
  for (uint i = 0; i < count; ++i) {
    write(kj::str("cat/", 10 + i, ".jpg"), jpegOf(i));
    write(kj::str("dog/", 10 + i, ".jpg"), jpegOf(100 + i));
  }
}

kj::String Images::pack(kj::StringPtr from) {
  auto archive = scratch.path("images.tar");
  auto command = kj::str("tar cf ", archive, " -C ", scratch.path(""), from, " .");
  KJ_ASSERT(::system(command.cStr()) == 0);
  config.source = kj::str(archive);
  return archive;
}

Imported Images::import() {
  Imported result;
  Progress progress = unheard();
  Warn warn = [&](kj::StringPtr sentence) { result.warnings.add(kj::str(sentence)); };
  auto training = RecordWriter::create(scratch.path("training.mdb"));
  auto validation = RecordWriter::create(scratch.path("validation.mdb"));
  BadImages badImages(scratch.path(""));
  result.classNames = importFolder(config, findImages(config, nullptr),
      findValidationImages(config, nullptr), *training, *validation, badImages, progress, warn);
  ::unlink(scratch.path(BAD_IMAGES_FILE).cStr());
  training->finish();
  validation->finish();
  for (auto name: {"training.mdb", "validation.mdb"}) {
    auto db = RecordDb::open(scratch.path(name));
    auto reader = RecordReader::open(*db);
    if (result.paths.size() == 0) result.training = db->count();
    for (uint64_t i = 0; i < db->count(); ++i) {
      result.ids.add(reader->read(i).id);
      result.labels.add(reader->read(i).label);
      result.paths.add(kj::str(KJ_ASSERT_NONNULL(db->source(i))));
    }
  }
  return result;
}

kj::String Images::refusal() {
  return thrownBy([&]() { import(); });
}

}  // namespace io
