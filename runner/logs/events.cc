#include "runner/logs/events.h"

#include <capnp/compat/json.h>
#include <capnp/message.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "configs/language/failure.h"
#include "runner/system/files.h"
#include "runner/text/json.h"

namespace runner {

namespace {

// Returns the codec of all events, which all threads share. Making one takes ten times as long as
// parsing an event.
const capnp::JsonCodec& codecOfEvents() {
  static const auto codec = []() {
    auto made = kj::heap<capnp::JsonCodec>();
    made->handleByAnnotation<Event>();
    return made;
  }();
  return *codec;
}

// Whether a line holds an event `speed`. The line may be damaged, because nobody reads it.
bool isSpeedLine(kj::ArrayPtr<const char> line) {
  // Within a string, the quotes would have backslashes.
  constexpr auto KIND = "\"speed\":"_kj;
  return ::memmem(line.begin(), line.size(), KIND.begin(), KIND.size()) != nullptr;
}

// What is done about events.
struct Reading {
  bool withSpeed = true;
  bool failsAtDamage = true;
};

// Returns the clause of eachEventUntilDamage().
kj::String eachEvent(
    const RunFolder& folder, Reading reading, kj::FunctionParam<void(Event::Reader)> take) {
  if (::access(folder.events().cStr(), F_OK) != 0 && (errno == ENOENT || errno == ENOTDIR)) {
    configs::fail(folder.path, " is not the folder of a run: it has no events.jsonl");
  }
  auto text = readRegular(folder.events(), EVENTS_BYTES_MAX);
  uint64_t number = 1;
  for (kj::StringPtr rest = text;; number++) {
    KJ_IF_MAYBE(length, rest.findFirst('\n')) {
      auto found = rest.slice(0, *length);
      rest = rest.slice(*length + 1);
      if (!reading.withSpeed && isSpeedLine(found)) continue;
      auto line = kj::heapString(found);
      capnp::MallocMessageBuilder message;
      auto event = message.initRoot<Event>();
      // The parser's own message refers to its source code, and would not help the user.
      if (kj::runCatchingExceptions([&]() { parseEvent(line, event); }) != nullptr) {
        auto damage = kj::str(folder.events(), ":", number, " is not an event of a run");
        if (!reading.failsAtDamage) return damage;
        configs::fail(
            damage, ": another program or version wrote or changed it; leave this folder ", "out");
      }
      take(event);
    } else {
      return nullptr;
    }
  }
}

}  // namespace

kj::String formatEvent(Event::Reader event) {
  return codecOfEvents().encode(event);
}

void parseEvent(kj::StringPtr line, Event::Builder event) {
  decodeJson(line, [&](kj::ArrayPtr<const char> json) { codecOfEvents().decode(json, event); });
}

void eachEvent(const RunFolder& folder, kj::FunctionParam<void(Event::Reader)> take) {
  eachEvent(folder, Reading{}, take);
}

void eachEventButSpeed(const RunFolder& folder, kj::FunctionParam<void(Event::Reader)> take) {
  eachEvent(folder, Reading{.withSpeed = false}, take);
}

kj::String eachEventUntilDamage(
    const RunFolder& folder, kj::FunctionParam<void(Event::Reader)> take) {
  return eachEvent(folder, Reading{.failsAtDamage = false}, take);
}

bool beginsWithEvent(const RunFolder& folder) {
  bool any = false;
  // Other JSON objects have no such time.
  eachEventUntilDamage(folder, [&](Event::Reader event) { any = any || event.getTimeS() > 0; });
  return any;
}

bool isLast(Event::Reader event) {
  return event.isFinished() || event.isFailed() || event.isInterrupted() || event.isStopped();
}

bool endsSaving(Event::Reader event) {
  return event.isSaved() || event.isUnsaved() || event.isNotSaved();
}

}  // namespace runner
