// runner/role_options.h: which role of which job a process (or, inline, a thread) is.
#pragma once

#include <kj/string.h>

#include "rpc/trace.h"
#include "runner/job.capnp.h"
#include "runner/run_folder.h"

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

// One role of a job.
struct RoleOptions {
  Role role;
  uint index = 0;
  kj::String coordinator;                      // its address; empty for the coordinator itself
  RunFolder folder;                            // the coordinator's
  kj::Maybe<rpc::TraceSteps> trace = nullptr;  // what to record, and leave in `folder`
  // Whether a launcher started it, which hears from every role why it ended and records how the run
  // ended. Without one the roles tell the coordinator, which records it, and every role tells the
  // user on stderr how it goes.
  bool launched = false;
};

}  // namespace runner
