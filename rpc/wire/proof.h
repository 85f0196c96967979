// rpc/wire/proof.h: both ends of a new connection prove that they belong to the job, before either
// of them reads anything else.
//
// The calling end sends its name and a number drawn at random. The accepting end answers with its
// own name, another random number, and a code that only an end with the job's secret can compute
// (HMAC-SHA-256 over both names and both numbers). Then the calling end sends a code in turn. The
// two codes differ in a word for the direction. So nobody can record a proof and use it again, send
// it back, or use it for another role. Each message has a fixed length, 192 bytes in all, and no
// byte beyond them is read.
//
// The proof does not encrypt the rest of the connection. It gives both ends a key for that: see
// rpc/wire/opening.h. Without encryption, an attacker who controls the network between two roles
// can still read and change the rest.
#pragma once

#include <kj/async-io.h>
#include <kj/string.h>

#include "rpc/wire/secret.h"

namespace rpc {

// The longest name of a role, in bytes: "coordinator", "worker 4095".
constexpr size_t NAME_BYTES_MAX = 23;

// The identity that one end of a connection proves: its name in the job, by the job's secret.
struct Identity {
  kj::String name;  // "worker 1"; "worker" for a role that asks the coordinator for its index
  Secret secret;
  // Whether TCP connections of this job are encrypted (cluster.tls). Both ends must agree.
  bool tls = false;
};

// Why a proof fails: the two ends have different secrets, or only one of them encrypts.
constexpr kj::StringPtr WRONG_SECRET = "it does not know this job's secret"_kj;
constexpr kj::StringPtr TLS_ONLY_THERE =
    "it uses TLS (cluster.tls = true), and this role does not"_kj;
constexpr kj::StringPtr TLS_ONLY_HERE =
    "it does not use TLS, and this role does (cluster.tls = true)"_kj;

// The calling end's part. Resolves when the other end of `stream` has proven that it is `other`.
// The result is a secret that only the two ends of this connection know. Rejects with FAILED if the
// other end proves something else or is not this program, and with DISCONNECTED if it closes the
// connection; the description is a sentence about "it". Has no time-out. All arguments must outlive
// the promise.
kj::Promise<Secret> proveAsCaller(
    kj::AsyncIoStream& stream, const Identity& own, kj::StringPtr other);

// The accepting end's part. Resolves, to the same secret, when the other end has proven that it
// knows the job's secret. Otherwise it rejects like proveAsCaller(), but with FAILED if the other
// end closes the connection after it was asked for its proof. Has no time-out. All arguments must
// outlive the promise.
kj::Promise<Secret> proveAsListener(kj::AsyncIoStream& stream, const Identity& own);

}  // namespace rpc
