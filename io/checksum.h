// io/checksum.h: SHA-256, for the checksums of data sets, the digests of experiments and weights;
// CRC-32, for files that this program checks when it reads them again.
#pragma once

#include <kj/array.h>
#include <kj/common.h>
#include <kj/string.h>
#include <stdint.h>

namespace io {

// Computes a SHA-256 (FIPS 180-4) piece by piece, by libcrypto.
class Sha256 {
public:
  Sha256();
  ~Sha256() noexcept(false);
  KJ_DISALLOW_COPY(Sha256);

  void update(kj::ArrayPtr<const kj::byte> bytes);
  // Returns the 32 bytes of the sum. Nothing can be added after this call.
  kj::Array<kj::byte> finish();

private:
  void* context;
};

// Returns the SHA-256 of `bytes` as 64 lower-case hexadecimal digits.
kj::String sha256Hex(kj::ArrayPtr<const kj::byte> bytes);

// Returns the CRC-32 (as in zlib and PNG) of a sequence of bytes that ends with `bytes`. `before`
// is the CRC-32 of the bytes before these, and 0 if there are none. A CRC-32 is several times as
// fast as a SHA-256. It reveals accidental damage, but not changes that somebody made on purpose.
uint32_t crc32(kj::ArrayPtr<const kj::byte> bytes, uint32_t before = 0);

}  // namespace io
