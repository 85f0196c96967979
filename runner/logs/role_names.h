// runner/logs/role_names.h: what commands, messages and files call the roles of a job.
#pragma once

#include <kj/string.h>

#include "runner/logs/job.capnp.h"

namespace runner {

using kj::uint;

// "worker": the word on the command line.
kj::StringPtr roleWord(Role role);
// "worker 1": what messages call a role.
kj::String roleName(Role role, uint index);
// "the process of servers 0 to 1": what they call a process of `count` servers. Of one role, its
// name.
kj::String processName(Role role, uint first, uint count);
// The names in one text. Of many the first five, and how many there are.
kj::String roleList(kj::ArrayPtr<const kj::String> names);

}  // namespace runner
