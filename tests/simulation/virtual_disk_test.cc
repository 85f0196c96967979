#include "tests/simulation/virtual_disk.h"

#include <doctest/doctest.h>
#include <errno.h>
#include <fcntl.h>
#include <kj/debug.h>
#include <kj/io.h>
#include <unistd.h>

#include "tests/command.h"

namespace simulation {
namespace {

using tests::readFile;

// A disk with one file, of which "first" and its name are on the disk.
struct OneFile {
  kj::String root = tests::newFolder();
  VirtualDisk disk{root};
  kj::String path = kj::str(root, "/file");
  kj::AutoCloseFd file = open(path, O_RDWR | O_CREAT | O_APPEND);
  Dice dice{1};

  OneFile() {
    append("first");
    KJ_SYSCALL(::fsync(file));
    KJ_SYSCALL(::fsync(open(root, O_RDONLY | O_DIRECTORY)));
  }

  static kj::AutoCloseFd open(kj::StringPtr path, int flags) {
    int fd;
    KJ_SYSCALL(fd = ::open(path.cStr(), flags, 0666), path);
    return kj::AutoCloseFd(fd);
  }
  void append(kj::StringPtr text) { KJ_SYSCALL(::write(file, text.begin(), text.size())); }
  void failToSync() {
    disk.failSyncs(1, "/file");
    REQUIRE(::fsync(file) == -1);
    REQUIRE(errno == EIO);
  }
  // Returns the content after a loss of power.
  kj::String afterPowerLoss() {
    file = nullptr;
    disk.losePower(dice);
    return readFile(path);
  }
};

TEST_CASE("VirtualDisk: bytes that a failed fsync() has lost are not written by a later fsync()") {
  OneFile one;
  one.append("lost");
  one.failToSync();
  CHECK(readFile(one.path) == "firstlost");
  SUBCASE("alone") {
    CHECK(::fsync(one.file) == 0);
    CHECK(one.afterPowerLoss() == kj::StringPtr("first\0\0\0\0", 9));
  }
  SUBCASE("and it syncs bytes that were written since") {
    one.append("kept");
    CHECK(::fsync(one.file) == 0);
    CHECK(one.afterPowerLoss() == kj::StringPtr("first\0\0\0\0kept", 13));
  }
  SUBCASE("unless it is written again") {
    KJ_SYSCALL(::pwrite(OneFile::open(one.path, O_RDWR), "lost", 4, 5));
    CHECK(::fsync(one.file) == 0);
    CHECK(one.afterPowerLoss() == "firstlost");
  }
  SUBCASE("and a truncation forgets the bytes that it removes") {
    KJ_SYSCALL(::ftruncate(one.file, 6));
    one.append("new");
    CHECK(::fsync(one.file) == 0);
    CHECK(one.afterPowerLoss() == kj::StringPtr("first\0new", 9));
  }
}

TEST_CASE(
    "VirtualDisk: without a later fsync(), a failed one leaves the earlier content of the disk") {
  OneFile one;
  one.append("lost");
  one.failToSync();
  CHECK(one.afterPowerLoss() == "first");
}

TEST_CASE("VirtualDisk: the fsync() of a dead process loses nothing that waits for the disk") {
  OneFile one;
  one.append("kept");
  one.disk.stop();
  CHECK(::fsync(one.file) == -1);
  one.disk.go();
  CHECK(::fsync(one.file) == 0);
  CHECK(one.afterPowerLoss() == "firstkept");
}

}  // namespace
}  // namespace simulation
