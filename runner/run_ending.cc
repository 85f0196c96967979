#include "runner/run_ending.h"

#include <capnp/message.h>
#include <kj/time.h>

namespace runner {

void appendEnding(RunLog& log, Ending ending, kj::StringPtr reason) {
  capnp::MallocMessageBuilder message;
  auto event = message.initRoot<Event>();
  auto now = kj::systemPreciseCalendarClock().now();
  event.setTimeS((now - kj::UNIX_EPOCH) / kj::NANOSECONDS * 1e-9);
  switch (ending) {
    case Ending::FAILED:
      event.initFailed().setReason(reason);
      break;
    case Ending::INTERRUPTED:
      event.initInterrupted().setReason(reason);
      break;
  }
  log.append(event);
}

void recordEnding(
    const RunFolder& folder, const LogStyle& style, Ending ending, kj::StringPtr reason) {
  auto log = RunLog::reopen(folder, style);
  appendEnding(log, ending, reason);
}

}  // namespace runner
