// rpc/wire/secret.h: the secret that only the roles of a job know.
#pragma once

#include <kj/array.h>
#include <kj/string.h>

#include <initializer_list>

namespace rpc {

// 32 bytes. The destructor overwrites them.
class Secret {
public:
  static constexpr size_t BYTES = 32;

  // The publicly known secret, for a job without a real one. Proofs with it only show that both
  // ends are this program.
  Secret() = default;
  // Draws a new one from the system.
  static Secret random();
  // Reads 64 hexadecimal digits. Null if `digits` are something else.
  static kj::Maybe<Secret> parse(kj::StringPtr digits);
  ~Secret();

  // False for the publicly known secret.
  bool isSet() const;
  // Returns 64 lower-case hexadecimal digits, for parse(). Freeing that text does not overwrite it.
  kj::String digits() const;
  // Returns the HMAC-SHA-256 (RFC 2104) of `parts`, one after the other. Parts of variable length
  // must not be neighbours.
  kj::FixedArray<kj::byte, BYTES> sign(
      std::initializer_list<kj::ArrayPtr<const kj::byte>> parts) const;
  // Derives a secret that can only be computed from this one. The same `purpose` gives the same
  // secret.
  Secret derive(kj::ArrayPtr<const kj::byte> purpose) const;

private:
  kj::byte bytes[BYTES] = {};
};

}  // namespace rpc
