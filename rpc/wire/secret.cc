#include "rpc/wire/secret.h"

#include <kj/debug.h>
#include <kj/encoding.h>
#include <kj/vector.h>
#include <openssl/crypto.h>
#include <openssl/hmac.h>
#include <string.h>
#include <sys/random.h>

namespace rpc {

Secret Secret::random() {
  Secret secret;
  ssize_t n;
  KJ_SYSCALL(n = ::getrandom(secret.bytes, BYTES, 0));
  KJ_ASSERT(n == BYTES);
  return secret;
}

kj::Maybe<Secret> Secret::parse(kj::StringPtr digits) {
  if (digits.size() != 2 * BYTES) return nullptr;
  auto decoded = kj::decodeHex(digits);
  if (decoded.hadErrors) return nullptr;
  Secret secret;
  memcpy(secret.bytes, decoded.begin(), BYTES);
  OPENSSL_cleanse(decoded.begin(), decoded.size());
  return secret;
}

Secret::~Secret() {
  OPENSSL_cleanse(bytes, BYTES);
}

bool Secret::isSet() const {
  constexpr kj::byte NONE[BYTES] = {};
  return memcmp(bytes, NONE, BYTES) != 0;
}

kj::String Secret::digits() const {
  return kj::encodeHex(bytes);
}

kj::FixedArray<kj::byte, Secret::BYTES> Secret::sign(
    std::initializer_list<kj::ArrayPtr<const kj::byte>> parts) const {
  kj::Vector<kj::byte> message;
  for (auto& part: parts) message.addAll(part);
  kj::FixedArray<kj::byte, BYTES> code;
  KJ_REQUIRE(HMAC(EVP_sha256(), bytes, BYTES, message.begin(), message.size(), code.begin(),
                 nullptr) != nullptr,
      "libcrypto has no HMAC-SHA-256");
  return code;
}

Secret Secret::derive(kj::ArrayPtr<const kj::byte> purpose) const {
  auto code = sign({"derived "_kj.asBytes(), purpose});
  Secret derived;
  memcpy(derived.bytes, code.begin(), BYTES);
  OPENSSL_cleanse(code.begin(), BYTES);
  return derived;
}

}  // namespace rpc
