#include "rpc/wire/opening.h"

#include "rpc/wire/encryption.h"
#include "rpc/wire/wire.h"

namespace rpc {

namespace {

kj::Promise<kj::Own<kj::AsyncIoStream>> encryptAfter(
    kj::Promise<Secret> proof, kj::Own<kj::AsyncIoStream> stream, const Identity& own, End end) {
  using Opened = kj::Promise<kj::Own<kj::AsyncIoStream>>;
  return proof.then([stream = kj::mv(stream), &own, end](Secret key) mutable -> Opened {
    if (!own.tls || isUnixSocket(*stream)) return kj::mv(stream);
    return encrypt(kj::mv(stream), key, end);
  });
}

}  // namespace

kj::Promise<kj::Own<kj::AsyncIoStream>> openAsCaller(
    kj::Own<kj::AsyncIoStream> stream, const Identity& own, kj::StringPtr other) {
  auto proof = proveAsCaller(*stream, own, other);
  return encryptAfter(kj::mv(proof), kj::mv(stream), own, End::CALLER);
}

kj::Promise<kj::Own<kj::AsyncIoStream>> openAsListener(
    kj::Own<kj::AsyncIoStream> stream, const Identity& own) {
  auto proof = proveAsListener(*stream, own);
  return encryptAfter(kj::mv(proof), kj::mv(stream), own, End::LISTENER);
}

}  // namespace rpc
