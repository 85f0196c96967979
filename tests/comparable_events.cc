#include "tests/comparable_events.h"

#include <capnp/message.h>
#include <kj/debug.h>
#include <kj/vector.h>

#include <algorithm>

#include "runner/logs/run_log.h"

namespace tests {

namespace {

// Removes what differs from one run to the next.
void removeTimes(runner::Event::Builder event) {
  event.setTimeS(0);
  if (event.isSpeed()) {
    auto speed = event.getSpeed();
    speed.setImagesPerS(0);
    speed.setIntervalS(0);
    speed.setTrainingS(0);
  } else if (event.isTrained()) {
    auto trained = event.getTrained();
    trained.setTimeS(0);
    trained.setReadS(0);
    trained.setForwardS(0);
    trained.setBackwardS(0);
    trained.setPushS(0);
    trained.setPullS(0);
    trained.setReaderThreads(0);
    for (auto server: trained.getServers()) {
      server.setCalls(0);
      server.setRoundTripsS(0);
      server.setRoundTripMaxS(0);
      server.setWaitingMaxBytes(0);
      server.setReconnects(0);
    }
  } else if (event.isEnded()) {
    event.getEnded().setTrainingS(0);
  } else if (event.isJoined()) {
    event.getJoined().setPid(0);
    event.getJoined().setAddress("");
  } else if (event.isFinished()) {
    event.getFinished().setSeconds(0);
  }
}

}  // namespace

kj::String comparableEvents(const runner::RunFolder& folder) {
  kj::Vector<kj::String> lines;
  runner::eachEvent(folder, [&](runner::Event::Reader recorded) {
    if (recorded.isSaved() || recorded.isUnsaved() || recorded.isContinued()) return;
    capnp::MallocMessageBuilder message;
    message.setRoot(recorded);
    auto event = message.getRoot<runner::Event>();
    removeTimes(event);
    lines.add(runner::formatEvent(event));
  });
  // The roles run side by side.
  auto roleOf = [](kj::StringPtr line) {
    auto from = KJ_ASSERT_NONNULL(line.findFirst(','));
    return kj::str(
        line.slice(from, from + kj::StringPtr(",\"role\":\"worker\",\"index\":1").size()));
  };
  std::stable_sort(lines.begin(), lines.end(),
      [&](kj::StringPtr a, kj::StringPtr b) { return roleOf(a) < roleOf(b); });
  return kj::str(kj::strArray(lines, "\n"), "\n");
}

}  // namespace tests
