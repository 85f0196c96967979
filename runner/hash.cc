#include "runner/hash.h"

#include <kj/debug.h>
#include <kj/encoding.h>
#include <openssl/sha.h>

namespace runner {

kj::String sha256(kj::ArrayPtr<const kj::byte> bytes) {
  kj::byte digest[SHA256_DIGEST_LENGTH];
  KJ_ASSERT(SHA256(bytes.begin(), bytes.size(), digest) != nullptr);
  return kj::encodeHex(kj::arrayPtr(digest, sizeof(digest)));
}

}  // namespace runner
