#include "runner/roles/address_file.h"

#include <doctest/doctest.h>
#include <kj/debug.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "runner/system/files.h"
#include "runner/system/reason.h"
#include "tests/text.h"

namespace runner {
namespace {

RunFolder newFolder(kj::StringPtr name) {
  RunFolder folder{kj::str(::getenv("TEST_TMPDIR"), "/", name)};
  REQUIRE(::mkdir(folder.path.cStr(), 0777) == 0);
  return folder;
}

TEST_CASE(
    "AddressFile: only its owner can read the coordinator's address, while the object lives") {
  auto folder = newFolder("lives");
  CHECK(readAddressFile(folder) == nullptr);
  auto secret = rpc::Secret::random();
  {
    AddressFile file(folder, {kj::str("10.0.0.4:7000"), secret});
    auto place = KJ_ASSERT_NONNULL(readAddressFile(folder));
    CHECK(place.address == "10.0.0.4:7000");
    CHECK(place.secret.digits() == secret.digits());
    struct stat about;
    REQUIRE(::stat(folder.address().cStr(), &about) == 0);
    CHECK((about.st_mode & 0777) == 0600);
  }
  CHECK(readAddressFile(folder) == nullptr);
}

TEST_CASE("AddressFile: replaces a file that is left over, and need not hold a secret") {
  auto folder = newFolder("left");
  writeWhole(folder.address(), "10.0.0.4:7000\n");
  AddressFile file(folder, {kj::str("10.0.0.5:7001")});
  auto place = KJ_ASSERT_NONNULL(readAddressFile(folder));
  CHECK(place.address == "10.0.0.5:7001");
  CHECK_FALSE(place.secret.isSet());
}

TEST_CASE("readAddressFile: refuses a file that others may read, or that holds no valid address") {
  auto folder = newFolder("refused");
  auto refused = [&](kj::StringPtr text, mode_t mode) {
    writeWhole(folder.address(), text);
    REQUIRE(::chmod(folder.address().cStr(), mode) == 0);
    auto e = kj::runCatchingExceptions([&]() { readAddressFile(folder); });
    return reasonOf(KJ_ASSERT_NONNULL(e));
  };
  CHECK(tests::contains(refused("10.0.0.4:7000\n", 0644), "can be read by other users"));
  for (auto text: {"", "10.0.0.4:7000", "10.0.0.4\n", "10.0.0.4:7000\nabc\n"}) {
    INFO(text);
    CHECK(tests::contains(refused(text, 0600), "does not say where a coordinator is"));
  }
}

}  // namespace
}  // namespace runner
