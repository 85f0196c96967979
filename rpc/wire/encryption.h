// rpc/wire/encryption.h: encrypts a connection whose two ends share a key.
#pragma once

#include <kj/async-io.h>

#include "rpc/wire/secret.h"

namespace rpc {

// Which end of a connection this is: the calling one, or the listening one.
enum class End { CALLER, LISTENER };

// The error if two ends have proven who they are but their keys differ: the two proofs did not
// belong to one connection.
constexpr kj::StringPtr RELAYED =
    "it has proved that it knows the secret, but on another TLS connection: somebody between the "
    "two "
    "machines changes what they send"_kj;

// Encrypts the following bytes on `stream` with TLS 1.3. Resolves to the encrypted stream when the
// other end has shown that it has the same `key`. Rejects with FAILED (RELAYED) if it has another
// one, and with DISCONNECTED if it closes the connection. Has no time-out.
//
// The result has the descriptor of `stream`, for socket options and measurements. Do not read or
// write there directly. As on a plain socket, a write resolves when the kernel has taken all of it.
// Bytes that were modified in transit break the connection: reading them rejects with DISCONNECTED.
kj::Promise<kj::Own<kj::AsyncIoStream>> encrypt(
    kj::Own<kj::AsyncIoStream> stream, const Secret& key, End end);

}  // namespace rpc
