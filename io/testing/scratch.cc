#include "io/testing/scratch.h"

#include <kj/filesystem.h>
#include <linux/capability.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <utility>

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

namespace {

// Replaces the effective capabilities by `effective`, and returns the old ones in it.
void exchangeCapabilities(uint32_t (&effective)[2]) {
  __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct data[2];
  KJ_SYSCALL(::syscall(SYS_capget, &header, data));
  for (auto i: {0, 1}) std::swap(data[i].effective, effective[i]);
  KJ_SYSCALL(::syscall(SYS_capset, &header, data));
}

}  // namespace

AsOrdinaryUser::AsOrdinaryUser(): capabilities{0, 0} {
  exchangeCapabilities(capabilities);
}

AsOrdinaryUser::~AsOrdinaryUser() noexcept(false) {
  exchangeCapabilities(capabilities);
}

DataConfig testConfig(kj::StringPtr name, kj::Maybe<kj::String> source) {
  DataConfig config;
  config.dataset = row(DATASETS, name);
  config.source = kj::mv(source);
  config.batchSize = 128;
  config.heldOut = 0;
  config.readerThreads = 2;
  config.addsReaders = false;
  config.encoding = config.dataset->source->encoding;
  config.resizeShortSide = 0;
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
