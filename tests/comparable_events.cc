#include "tests/comparable_events.h"

#include <capnp/message.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "runner/logs/events.h"

namespace tests {

namespace {

// Removes the parts that differ from run to run.
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

ComparableEvents::ComparableEvents(const runner::RunFolder& folder) {
  using RoleIndex = std::pair<runner::Role, kj::uint>;
  std::vector<std::pair<RoleIndex, kj::Array<capnp::word>>> found;
  runner::eachEvent(folder, [&](runner::Event::Reader recorded) {
    if (recorded.isSaved() || recorded.isUnsaved() || recorded.isContinued()) return;
    capnp::MallocMessageBuilder message;
    message.setRoot(recorded);
    auto event = message.getRoot<runner::Event>();
    removeTimes(event);
    found.emplace_back(
        RoleIndex{event.getRole(), event.getIndex()}, capnp::canonicalize(event.asReader()));
  });
  // The roles run side by side.
  std::stable_sort(found.begin(), found.end(), [](auto& a, auto& b) { return a.first < b.first; });
  for (auto& [role, event]: found) events.add(kj::mv(event));
}

bool ComparableEvents::operator==(const ComparableEvents& other) const {
  if (events.size() != other.events.size()) return false;
  for (auto i: kj::indices(events)) {
    if (events[i].asBytes() != other.events[i].asBytes()) return false;
  }
  return true;
}

kj::String ComparableEvents::text() const {
  auto lines = KJ_MAP(event, events) {
    kj::ArrayPtr<const capnp::word> segment = event;
    capnp::SegmentArrayMessageReader message(kj::arrayPtr(&segment, 1));
    return runner::formatEvent(message.getRoot<runner::Event>());
  };
  return kj::str(kj::strArray(lines, "\n"), "\n");
}

kj::String comparableEvents(const runner::RunFolder& folder) {
  return ComparableEvents(folder).text();
}

}  // namespace tests
