#include "io/checksum.h"

#include <doctest/doctest.h>

TEST_CASE("sha256Hex: gives the sums of the examples in FIPS 180-4") {
  CHECK(io::sha256Hex(kj::StringPtr("abc").asBytes()) ==
        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  CHECK(
      io::sha256Hex(nullptr) == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}

TEST_CASE("Sha256: adding a text in pieces gives the sum of the text") {
  io::Sha256 sum;
  sum.update(kj::StringPtr("a").asBytes());
  sum.update(kj::StringPtr("bc").asBytes());
  CHECK(sum.finish()[0] == 0xba);
}

TEST_CASE("crc32: gives the check value of the CRC catalogue, also in pieces") {
  auto digits = kj::StringPtr("123456789").asBytes();
  CHECK(io::crc32(digits) == 0xcbf43926);
  CHECK(io::crc32(digits.slice(4, 9), io::crc32(digits.slice(0, 4))) == 0xcbf43926);
  CHECK(io::crc32(nullptr) == 0);
  CHECK(io::crc32(nullptr, 0xcbf43926) == 0xcbf43926);
}
