#include "runner/sweep/stopped_run.h"

#include <capnp/message.h>
#include <kj/debug.h>
#include <kj/vector.h>

#include "runner/logs/events.h"
#include "runner/logs/run_log.h"
#include "runner/logs/run_record.h"
#include "runner/roles/instruction_set_choice.h"
#include "runner/system/files.h"

namespace runner {

namespace {

// Returns null if an event belongs to no epoch.
kj::Maybe<uint> epochOf(Event::Reader event) {
  switch (event.which()) {
    case Event::SPEED:
      return event.getSpeed().getEpoch();
    case Event::TRAINED:
      return event.getTrained().getEpoch();
    case Event::VALIDATED:
      return event.getValidated().getEpoch();
    default:
      return nullptr;
  }
}

// Returns the events up to the last one of `epoch`, one JSON line each, without those of later
// epochs, because one worker may be further than another. Events of a run's end are not part of a
// stopped run.
kj::Vector<kj::String> eventsUntil(const RunFolder& folder, uint epoch) {
  kj::Vector<kj::String> lines;
  size_t kept = 0;
  eachEvent(folder, [&](Event::Reader event) {
    bool isEnd = event.isEnded() || isLast(event);
    auto of = epochOf(event);
    // The file of the best weights is removed.
    if (isEnd || event.isBest() || of.orDefault(0) > epoch) return;
    lines.add(formatEvent(event));
    if (of.orDefault(0) == epoch) kept = lines.size();
  });
  lines.truncate(kept);
  return lines;
}

}  // namespace

void recordStop(const HeldRunFolder& held, const LoadedExperiment& loaded, const Stop& stop) {
  auto& folder = held.folder;
  auto lines = eventsUntil(folder, stop.epoch);
  auto level = readRunRecord(folder.path).instructionSet;
  if (level.size() == 0) level = kj::str(AUTO_INSTRUCTION_SET);
  held.empty();
  // As the coordinator has written it.
  writeWhole(folder.experiment(), withInstructionSet(loaded.resolved, level));

  auto& config = KJ_ASSERT_NONNULL(loaded.experiment).log;
  kj::Maybe<TensorBoard> board;
  if (config.tensorboard) board.emplace(folder.tensorboard());
  RunLog log(folder, *config.style, RunLog::toNobody(), kj::mv(board));
  double time_s = 0;
  for (auto& line: lines) {
    capnp::MallocMessageBuilder message;
    auto event = message.initRoot<Event>();
    parseEvent(line, event);
    time_s = event.getTimeS();
    log.append(event);
  }
  capnp::MallocMessageBuilder message;
  auto event = message.initRoot<Event>();
  event.setTimeS(time_s);
  auto stopped = event.initStopped();
  stopped.setEpoch(stop.epoch);
  stopped.setReason(stop.reason);
  stopped.setRule(stop.rule);
  log.append(event);
}

}  // namespace runner
