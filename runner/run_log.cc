#include "runner/run_log.h"

#include <capnp/compat/json.h>

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

RunLog::RunLog(
    const RunFolder& folder, const LogStyle& style, LineFile launcher, kj::Maybe<TensorBoard> board)
    : events(folder.events()),
      log(folder.log()),
      roles(folder),
      writer(style.writer()),
      launcher(kj::mv(launcher)),
      board(kj::mv(board)) {}

void RunLog::append(Event::Reader event) {
  auto json = formatEvent(event);
  events.append(json);
  auto lines = writer->lines(event);
  for (auto& line: lines) log.append(line);
  roles.append(event, lines);
  KJ_IF_MAYBE(b, board) b->append(event);
  launcher.append(json);
}

void RunLog::show(Event::Reader event) {
  launcher.append(formatEvent(event));
}

}  // namespace runner
