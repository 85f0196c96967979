// runner/logs/role_names.h: the names of roles in commands, messages and files.
#pragma once

#include <kj/string.h>

#include "runner/logs/job.capnp.h"

namespace runner {

using kj::uint;

// Returns the word on the command line: "worker".
kj::StringPtr roleWord(Role role);
// Returns the name in messages: "worker 1".
kj::String roleName(Role role, uint index);
// Returns the name of a role or process on a host: "worker 1 on node2". `host` may be empty.
kj::String onHost(kj::StringPtr name, kj::StringPtr host);
// Returns the name of a process of `count` servers in messages: "the process of servers 0 to 1".
// For one role it is the role's name.
kj::String processName(Role role, uint first, uint count);
// Returns the names in one text. If there are many, the text has the first five and the number of
// all.
kj::String roleList(kj::ArrayPtr<const kj::String> names);
// Returns ` (text)`, or nothing if `text` is empty.
kj::String inParentheses(kj::StringPtr text);

}  // namespace runner
