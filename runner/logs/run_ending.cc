#include "runner/logs/run_ending.h"

#include <capnp/message.h>
#include <kj/debug.h>
#include <kj/time.h>
#include <sys/stat.h>

#include "runner/logs/events.h"
#include "runner/system/files.h"

namespace runner {

namespace {

Outcome outcomeOf(kj::StringPtr lastEvent) {
  capnp::MallocMessageBuilder message;
  auto event = message.initRoot<Event>();
  parseEvent(lastEvent, event);
  Outcome outcome;
  if (event.isFinished()) outcome.weightsSha256 = kj::str(event.getFinished().getWeightsSha256());
  if (event.isFailed()) outcome.failure = kj::str(event.getFailed().getReason());
  if (event.isInterrupted()) outcome.interruption = kj::str(event.getInterrupted().getReason());
  return outcome;
}

}  // namespace

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

kj::Maybe<kj::String> recordedWeightsOf(const RunFolder& folder) {
  Outcome outcome;
  auto read = [&]() { outcome = outcomeOf(lastLineOf(folder.events())); };
  if (kj::runCatchingExceptions(read) != nullptr) return nullptr;
  return kj::mv(outcome.weightsSha256);
}

void removeEnding(const RunFolder& folder) {
  removeTornLine(folder.events());
  auto line = lastLineOf(folder.events());
  capnp::MallocMessageBuilder message;
  auto event = message.initRoot<Event>();
  auto parse = [&]() { parseEvent(line, event); };
  if (kj::runCatchingExceptions(parse) != nullptr || !isLast(event)) return;
  struct stat about;
  KJ_SYSCALL(::stat(folder.events().cStr(), &about), folder.events());
  cutFile(folder.events(), about.st_size - line.size() - 1);
}

Outcome recordEnding(
    const RunFolder& folder, const LogStyle& style, Ending ending, kj::StringPtr reason) {
  auto log = RunLog::reopen(folder, style);
  if (log.lastEvent() == nullptr) appendEnding(log, ending, reason);
  return outcomeOf(KJ_ASSERT_NONNULL(log.lastEvent()));
}

}  // namespace runner
