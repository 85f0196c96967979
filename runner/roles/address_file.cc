#include "runner/roles/address_file.h"

#include <errno.h>
#include <fcntl.h>
#include <kj/io.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "configs/language/failure.h"
#include "runner/roles/job_secret.h"
#include "runner/roles/role_addresses.h"
#include "runner/system/files.h"

namespace runner {

AddressFile::AddressFile(const RunFolder& folder, const CoordinatorPlace& place): folder(folder) {
  auto path = folder.address();
  auto temporary = kj::str(path, ".part");
  auto text = place.secret.isSet() ? kj::str(place.address, "\n", place.secret.digits(), "\n")
                                   : kj::str(place.address, "\n");
  ::unlink(temporary.cStr());
  int raw = ::open(temporary.cStr(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  int error = raw < 0 ? errno : 0;
  if (raw >= 0) {
    kj::AutoCloseFd file(raw);
    error = writeAll(file, text.asBytes());
  }
  if (error == 0 && ::rename(temporary.cStr(), path.cStr()) != 0) error = errno;
  if (error == 0) return;
  ::unlink(temporary.cStr());
  configs::fail("cannot write ", path,
      ", by which the other roles find the coordinator: ", ::strerror(error), "; ", otherRuns());
}

AddressFile::~AddressFile() noexcept {
  ::unlink(folder.address().cStr());
}

kj::Maybe<CoordinatorPlace> readAddressFile(const RunFolder& folder) {
  auto path = folder.address();
  // Opening a folder of a network file system makes the client ask the server for its names again.
  int raw = ::open(folder.path.cStr(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (raw >= 0) ::close(raw);
  raw = ::open(path.cStr(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (raw < 0) {
    if (errno == ENOENT || errno == ESTALE) return nullptr;
    configs::fail(
        "cannot read ", path, ", by which this role finds the coordinator: ", ::strerror(errno));
  }
  kj::AutoCloseFd file(raw);
  requirePrivate(file, path, "");
  constexpr uint64_t BYTES_MAX = 1024;
  auto text = readWhole(file, path, BYTES_MAX);
  KJ_IF_MAYBE(end, text.findFirst('\n')) {
    CoordinatorPlace place{kj::heapString(text.slice(0, *end))};
    kj::StringPtr rest = text.slice(*end + 1);
    bool isWhole = rest.size() == 0;
    if (rest.endsWith("\n")) {
      KJ_IF_MAYBE(secret, rpc::Secret::parse(kj::heapString(rest.slice(0, rest.size() - 1)))) {
        place.secret = *secret;
        isWhole = true;
      }
    }
    if (isWhole && parseHostAndPort(place.address) != nullptr) return kj::mv(place);
  }
  configs::fail(path, " does not say where a coordinator is; remove it, or choose another folder");
}

}  // namespace runner
