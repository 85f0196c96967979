// runner/system/interrupts.h: the signals that end a run in order.
#pragma once

#include <kj/array.h>
#include <kj/string.h>

namespace runner {

// SIGINT and SIGTERM, and SIGHUP unless this process was started to ignore it (nohup). Call this
// before a handler is set.
kj::Array<int> interrupts();

// "received SIGINT (Ctrl-C)": why a run was interrupted.
kj::StringPtr reasonOfInterrupt(int signal);

}  // namespace runner
