// runner/roles/role_options.h: which role of which job a process (or, inline, a thread) is.
#pragma once

#include <kj/string.h>

#include "rpc/trace.h"
#include "runner/logs/job.capnp.h"
#include "runner/logs/run_folder.h"

namespace runner {

using kj::uint;

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
