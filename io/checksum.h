// io/checksum.h: SHA-256: the checksums of data sets, the digests of experiments and weights.
#pragma once

#include <kj/array.h>
#include <kj/common.h>
#include <kj/string.h>

namespace io {

// A SHA-256 in the making (FIPS 180-4), by libcrypto.
class Sha256 {
public:
  Sha256();
  ~Sha256() noexcept(false);
  KJ_DISALLOW_COPY(Sha256);

  void update(kj::ArrayPtr<const kj::byte> bytes);
  // 32 bytes. Nothing can be added after.
  kj::Array<kj::byte> finish();

private:
  void* context;
};

// The sum of `bytes` as 64 lower-case hexadecimal digits.
kj::String sha256Hex(kj::ArrayPtr<const kj::byte> bytes);

}  // namespace io
