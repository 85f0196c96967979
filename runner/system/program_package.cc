#include "runner/system/program_package.h"

#include <archive.h>
#include <archive_entry.h>
#include <kj/encoding.h>
#include <kj/filesystem.h>
#include <kj/vector.h>
#include <link.h>
#include <sys/stat.h>

#include <regex>

#include "configs/language/failure.h"
#include "io/checksum.h"

namespace runner {

namespace {

using Take = kj::Function<void(kj::ArrayPtr<const kj::byte>)>;

// The modification time of all files in the package. It is constant, so that the tar is always the
// same.
constexpr time_t TIME_S = 0;

// Libraries that belong to the machine and not to the program.
bool isOfMachine(kj::StringPtr name) {
  static const std::regex MACHINES(
      "ld-linux-.*|linux-vdso.*|lib(c|m|dl|pthread|rt|resolv|util|anl|mvec|nsl|nss_.*)\\.so.*"
      "|lib(cuda|cudart|cudnn|cublas|nvidia|nvrtc).*");
  return std::regex_match(name.cStr(), MACHINES);
}

// An archive of libarchive that is being written.
struct Tar {
  ::archive* tar = ::archive_write_new();
  kj::Maybe<kj::Exception> failure;  // of `take`
  Take& take;

  explicit Tar(Take& take): take(take) {
    ::archive_write_set_format_ustar(tar);
    check(::archive_write_open(tar, this, nullptr, &Tar::pass, nullptr));
  }
  ~Tar() { ::archive_write_free(tar); }
  KJ_DISALLOW_COPY(Tar);

  void check(int result) {
    if (result >= ARCHIVE_WARN) return;
    KJ_IF_MAYBE(e, failure) kj::throwFatalException(kj::mv(*e));
    configs::fail("cannot pack this program: ", ::archive_error_string(tar));
  }

  static la_ssize_t pass(::archive*, void* self, const void* bytes, size_t size_bytes) {
    auto& own = *static_cast<Tar*>(self);
    own.failure = kj::runCatchingExceptions(
        [&]() { own.take(kj::arrayPtr(static_cast<const kj::byte*>(bytes), size_bytes)); });
    return own.failure == nullptr ? la_ssize_t(size_bytes) : -1;
  }
};

}  // namespace

ProgramPackage::ProgramPackage() {
  kj::Vector<File> found;
  found.add(File{kj::str("runner"), kj::str("/proc/self/exe")});
  auto add = [](dl_phdr_info* library, size_t, void* list) {
    kj::StringPtr path = library->dlpi_name;
    KJ_IF_MAYBE(slash, path.findLast('/')) {
      auto name = path.slice(*slash + 1);
      auto& all = *static_cast<kj::Vector<File>*>(list);
      if (!isOfMachine(name)) all.add(File{kj::str("lib/", name), kj::str(path)});
    }
    return 0;
  };
  ::dl_iterate_phdr(add, &found);
  files = found.releaseAsArray();
}

void ProgramPackage::write(Take take) const {
  Tar tar(take);
  auto disk = kj::newDiskFilesystem();
  for (auto& file: files) {
    auto path = disk->getCurrentPath().evalNative(file.path);
    auto opened = disk->getRoot().openFile(path);
    auto bytes = opened->mmap(0, opened->stat().size);
    auto* entry = ::archive_entry_new();
    KJ_DEFER(::archive_entry_free(entry));
    ::archive_entry_set_pathname(entry, file.name.cStr());
    ::archive_entry_set_filetype(entry, AE_IFREG);
    ::archive_entry_set_perm(entry, 0755);
    ::archive_entry_set_size(entry, bytes.size());
    ::archive_entry_set_mtime(entry, TIME_S, 0);
    tar.check(::archive_write_header(tar.tar, entry));
    if (::archive_write_data(tar.tar, bytes.begin(), bytes.size()) < 0) tar.check(ARCHIVE_FATAL);
  }
  tar.check(::archive_write_close(tar.tar));
}

kj::String ProgramPackage::sha256() const {
  io::Sha256 sum;
  write([&sum](kj::ArrayPtr<const kj::byte> bytes) { sum.update(bytes); });
  return kj::encodeHex(sum.finish());
}

kj::Array<kj::byte> ProgramPackage::bytes() const {
  kj::Vector<kj::byte> all;
  write([&all](kj::ArrayPtr<const kj::byte> bytes) { all.addAll(bytes); });
  return all.releaseAsArray();
}

bool ProgramPackage::isUnchangedIn(kj::StringPtr folder) const {
  for (auto& file: files) {
    struct stat status;
    if (::stat(kj::str(folder, "/", file.name).cStr(), &status) != 0) return false;
    if (status.st_mtim.tv_sec != TIME_S) return false;
  }
  return true;
}

}  // namespace runner
