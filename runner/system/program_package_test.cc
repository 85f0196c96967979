#include "runner/system/program_package.h"

#include <doctest/doctest.h>
#include <string.h>

#include "io/checksum.h"

namespace runner {
namespace {

TEST_CASE("ProgramPackage: makes the same tar each time, and knows its checksum before") {
  ProgramPackage package;
  auto tar = package.bytes();
  CHECK(io::sha256Hex(tar) == package.sha256());
  // The first entry of a tar begins with its name.
  REQUIRE(tar.size() > 512);
  CHECK(kj::StringPtr(reinterpret_cast<const char*>(tar.begin())) == "runner");
  // This program holds the names, too, but not at the beginning of a block of a tar.
  constexpr size_t BLOCK_BYTES = 512;
  auto holds = [&](const char* name) {
    for (size_t at = 0; at < tar.size(); at += BLOCK_BYTES) {
      if (memcmp(tar.begin() + at, name, strlen(name) + 1) == 0) return true;
    }
    return false;
  };
  CHECK(holds("lib/libarchive.so.13"));
  CHECK_FALSE(holds("lib/libc.so.6"));
}

}  // namespace
}  // namespace runner
