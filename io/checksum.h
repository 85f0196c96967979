// io/checksum.h: SHA-256, for the checksums of data sets, the digests of experiments and weights.
#pragma once

#include <kj/array.h>
#include <kj/common.h>
#include <kj/string.h>

namespace io {

// Computes a SHA-256 (FIPS 180-4) piece by piece, by libcrypto.
class Sha256 {
public:
  Sha256();
  ~Sha256() noexcept(false);
  KJ_DISALLOW_COPY(Sha256);

  void update(kj::ArrayPtr<const kj::byte> bytes);
  // Returns the 32 bytes of the sum so far. More can be added.
  kj::Array<kj::byte> soFar() const;
  // Returns the 32 bytes of the sum. Nothing can be added after this call.
  kj::Array<kj::byte> finish();

private:
  void* context;
};

// Returns the SHA-256 of `bytes` as 64 lower-case hexadecimal digits.
kj::String sha256Hex(kj::ArrayPtr<const kj::byte> bytes);

}  // namespace io
