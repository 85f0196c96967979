#include "io/checksum.h"

#include <kj/debug.h>
#include <kj/encoding.h>
#include <libdeflate.h>
#include <openssl/evp.h>

namespace io {

Sha256::Sha256(): context(EVP_MD_CTX_new()) {
  KJ_REQUIRE(context != nullptr &&
                 EVP_DigestInit_ex(static_cast<EVP_MD_CTX*>(context), EVP_sha256(), nullptr) == 1,
      "libcrypto has no SHA-256");
}

Sha256::~Sha256() noexcept(false) {
  EVP_MD_CTX_free(static_cast<EVP_MD_CTX*>(context));
}

void Sha256::update(kj::ArrayPtr<const kj::byte> bytes) {
  KJ_REQUIRE(EVP_DigestUpdate(static_cast<EVP_MD_CTX*>(context), bytes.begin(), bytes.size()) == 1);
}

kj::Array<kj::byte> Sha256::finish() {
  auto sum = kj::heapArray<kj::byte>(32);
  KJ_REQUIRE(EVP_DigestFinal_ex(static_cast<EVP_MD_CTX*>(context), sum.begin(), nullptr) == 1);
  return sum;
}

kj::String sha256Hex(kj::ArrayPtr<const kj::byte> bytes) {
  Sha256 sum;
  sum.update(bytes);
  return kj::encodeHex(sum.finish());
}

uint32_t crc32(kj::ArrayPtr<const kj::byte> bytes, uint32_t before) {
  // libdeflate interprets a null pointer as a request for the initial value.
  if (bytes.size() == 0) return before;
  return libdeflate_crc32(before, bytes.begin(), bytes.size());
}

}  // namespace io
