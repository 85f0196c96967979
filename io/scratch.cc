#include "io/scratch.h"

#include <kj/filesystem.h>
#include <stdlib.h>
#include <sys/stat.h>

namespace io {

Scratch::Scratch() {
  auto parent = ::getenv("TEST_TMPDIR");
  folder = kj::str(parent == nullptr ? "/tmp" : parent, "/io-XXXXXX");
  KJ_REQUIRE(::mkdtemp(folder.begin()) != nullptr, folder);
}

Scratch::~Scratch() noexcept(false) {
  auto filesystem = kj::newDiskFilesystem();
  filesystem->getRoot().remove(kj::Path(nullptr).evalNative(folder));
}

kj::String Scratch::path(kj::StringPtr name) const {
  return kj::str(folder, "/", name);
}

kj::String Scratch::write(kj::StringPtr name, kj::ArrayPtr<const kj::byte> bytes) const {
  auto result = path(name);
  auto filesystem = kj::newDiskFilesystem();
  filesystem->getRoot()
      .openFile(kj::Path(nullptr).evalNative(result),
          kj::WriteMode::CREATE | kj::WriteMode::MODIFY | kj::WriteMode::CREATE_PARENT)
      ->writeAll(bytes);
  return result;
}

DataConfig testConfig(kj::StringPtr name, kj::Maybe<kj::String> source) {
  DataConfig config;
  config.dataset = row(DATASETS, name);
  config.source = kj::mv(source);
  config.batchSize = 128;
  config.part = row(TRAINING_PARTS, "split");
  config.order = row(RECORD_ORDERS, "shuffled");
  config.heldOut = 0;
  config.validateOn = row(VALIDATION_SETS, "validation");
  config.validation = row(VALIDATION_PARTS, "split");
  config.validationViews = row(VALIDATION_VIEWS, "centre");
  config.viewsAt = row(VIEWS_AT, "every");
  config.readerThreads = 2;
  config.encoding = row(ENCODINGS, config.dataset->source->encoding);
  config.resizeShortSide = 0;
  config.onBadRecord = row(BAD_RECORD_POLICIES, "fail");
  return config;
}

kj::Maybe<kj::String> sharedDatasets(kj::StringPtr file) {
  auto folder = ::getenv("RUNNER_DATASETS");
  if (folder == nullptr) return nullptr;
  struct stat status;
  auto path = kj::str(folder, "/", file);
  if (::stat(path.cStr(), &status) != 0) return nullptr;
  return kj::str(folder);
}

}  // namespace io
