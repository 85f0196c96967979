// runner/roles/job_secret.h: reads the job's secret.
#pragma once

#include <kj/string.h>

#include "rpc/wire/secret.h"

namespace runner {

// Reads the secret of a role that a launcher has started: the first line of `fd`, its standard
// input. Reads no byte beyond that line. Throws if the line is not a secret.
rpc::Secret secretFromLauncher(int fd);

// Reads the secret of a role that was started by hand: 64 hexadecimal digits and perhaps the end of
// a line, in the file that the environment variable RUNNER_SECRET_FILE names. Without that variable
// the secret is not set. Throws, and says what to do, if there is no such file, if it holds
// something else, if it belongs to another user (except root), or if other users may read it.
rpc::Secret secretOfUser();

// Throws, and says what to do, if the open file at `path` belongs to another user (except root), or
// if other users may read it. `why` follows the path in messages.
void requirePrivate(int fd, kj::StringPtr path, kj::StringPtr why);

// Returns why a role must not listen on `host`, a numeric address: the secret is not set although
// other machines can reach the address or the job uses TLS. Null if the role may listen.
kj::Maybe<kj::String> whyNoSecret(kj::StringPtr host, bool tls, const rpc::Secret& secret);

}  // namespace runner
