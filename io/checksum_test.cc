#include "io/checksum.h"

#include <doctest/doctest.h>

TEST_CASE("sha256Hex: gives the sums of the examples in FIPS 180-4") {
  CHECK(io::sha256Hex(kj::StringPtr("abc").asBytes()) ==
        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  CHECK(
      io::sha256Hex(nullptr) == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}

TEST_CASE("Sha256: adding a text in pieces gives the sums of what was added so far") {
  io::Sha256 sum;
  sum.update(kj::StringPtr("a").asBytes());
  CHECK(sum.soFar()[0] == 0xca);
  sum.update(kj::StringPtr("bc").asBytes());
  CHECK(sum.soFar()[0] == 0xba);
  CHECK(sum.finish()[0] == 0xba);
}
