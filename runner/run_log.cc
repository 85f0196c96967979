#include "runner/run_log.h"

#include <capnp/compat/json.h>

#include "runner/log_lines.h"

namespace runner {

kj::String formatEvent(Event::Reader event) {
  capnp::JsonCodec codec;
  codec.handleByAnnotation<Event>();
  return codec.encode(event);
}

void parseEvent(kj::StringPtr line, Event::Builder event) {
  capnp::JsonCodec codec;
  codec.handleByAnnotation<Event>();
  codec.decode(line, event);
}

kj::Maybe<kj::String> classicLine(Event::Reader event) {
  auto time = kj::UNIX_EPOCH + int64_t(event.getTimeS() * 1e6) * kj::MICROSECONDS;
  auto prefix = logPrefix(time, event.getIndex());
  switch (event.which()) {
    case Event::SPEED: {
      auto speed = event.getSpeed();
      return kj::str(prefix, speedLine(speed.getEpoch() - 1, speed.getBatch(),
                                 speed.getImagesPerS(), "accuracy", speed.getAccuracy()));
    }
    case Event::TRAINED: {
      auto trained = event.getTrained();
      uint epoch = trained.getEpoch() - 1;
      return kj::str(prefix, trainLine(epoch, "accuracy", trained.getAccuracy()), '\n', prefix,
          timeLine(epoch, trained.getTimeS()));
    }
    case Event::VALIDATED: {
      auto validated = event.getValidated();
      return kj::str(
          prefix, validationLine(validated.getEpoch() - 1, "accuracy", validated.getAccuracy()));
    }
    default:
      return nullptr;
  }
}

RunLog::RunLog(const RunFolder& folder, LineFile launcher)
    : events(folder.events()), log(folder.log()), launcher(kj::mv(launcher)) {}

void RunLog::append(Event::Reader event) {
  auto json = formatEvent(event);
  events.append(json);
  KJ_IF_MAYBE(line, classicLine(event)) log.append(*line);
  launcher.append(json);
}

void RunLog::show(Event::Reader event) {
  launcher.append(formatEvent(event));
}

}  // namespace runner
