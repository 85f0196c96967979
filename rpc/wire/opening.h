// rpc/wire/opening.h: opens a connection. Both ends prove who they are (rpc/wire/proof.h). Then
// they encrypt it (rpc/wire/encryption.h) if the job's identities say so. The key follows from the
// proof, so an attacker between the two ends cannot relay the proof and then read or change the
// rest.
//
// A Unix socket is not encrypted, because it does not leave its machine.
#pragma once

#include <kj/async-io.h>

#include "rpc/wire/proof.h"

namespace rpc {

// The calling end's part. Resolves to the stream to use from then on. Rejects like proveAsCaller()
// and encrypt(). Has no time-out. `own` and `other` must outlive the promise.
kj::Promise<kj::Own<kj::AsyncIoStream>> openAsCaller(
    kj::Own<kj::AsyncIoStream> stream, const Identity& own, kj::StringPtr other);

// The accepting end's part. Rejects like proveAsListener() and encrypt(). Otherwise like
// openAsCaller().
kj::Promise<kj::Own<kj::AsyncIoStream>> openAsListener(
    kj::Own<kj::AsyncIoStream> stream, const Identity& own);

}  // namespace rpc
