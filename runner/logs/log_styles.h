// runner/logs/log_styles.h: the closed table of log styles: what events look like as lines for
// people.
#pragma once

#include <kj/array.h>
#include <kj/memory.h>
#include <kj/string.h>

#include "runner/logs/job.capnp.h"

namespace runner {

using kj::uint;

// Turns the events of one run, in their order, into the lines of one style. Remembers of each
// worker what a later line needs.
class LineWriter {
public:
  virtual ~LineWriter() noexcept(false) = default;

  // The lines that `event` adds, without newlines; often none. Each is whole: lines of different
  // workers are never mixed.
  virtual kj::Array<kj::String> lines(Event::Reader event) = 0;
};

// The lines of `writer`, and those that every style has: `2016-01-22 14:22:03,897 server 0: 12 of
// 800 pushes came late and were dropped`, at the end of each epoch, if there are any; and how the
// job ended, unless it went well.
kj::Array<kj::String> linesOf(LineWriter& writer, Event::Reader event);

// "the job failed: worker 0: the loss is nan …", or that it was interrupted; empty for other
// events.
kj::String brokenEndOf(Event::Reader event);

// A row: a system whose logs people and parsers know.
struct LogStyle {
  const char* name;
  const char* doc;
  uint every;  // log.every's default
  // Whether every log.every-th step is counted from the beginning of the epoch, whose last steps
  // then are a `partial` event, or from that of the run.
  enum Count { IN_EPOCH, IN_RUN } count;
  // What its lines tell the figures of, and its table has rows for.
  enum Tells { EPOCHS, STEPS } tells;
  kj::Own<LineWriter> (*writer)();
};
extern const kj::ArrayPtr<const LogStyle> LOG_STYLES;

}  // namespace runner
