// runner/logs/log_styles.h: the closed table of log styles. A style turns events into lines for
// people.
#pragma once

#include <kj/array.h>
#include <kj/memory.h>
#include <kj/string.h>

#include "runner/logs/job.capnp.h"

namespace runner {

using kj::uint;

// Turns the events of one run, in their order, into the lines of one style. Remembers of each
// worker what later lines need.
class LineWriter {
public:
  virtual ~LineWriter() noexcept(false) = default;

  // Returns the lines that `event` adds, without newlines; often none. Lines of different workers
  // are never mixed.
  virtual kj::Array<kj::String> lines(Event::Reader event) = 0;
};

// Returns the lines of `writer`, and those that every style has. One of these is `2016-01-22
// 14:22:03,897 server 0: 12 of 800 pushes came late and were dropped`, at the end of each epoch
// with such pushes. The other says how the job ended, unless it went well.
kj::Array<kj::String> linesOf(LineWriter& writer, Event::Reader event);

// Returns "the job failed: worker 0: the loss is nan …", or that the job was interrupted. Empty for
// other events.
kj::String brokenEndOf(Event::Reader event);

// A row of the table: a system whose logs people and parsers know.
struct LogStyle {
  const char* name;
  const char* doc;
  uint every;  // the default of log.every
  // From where each log.every-th step is counted. IN_EPOCH: from the beginning of the epoch. Steps
  // that are left over at its end make a `partial` event. IN_RUN: from the beginning of the run.
  enum Count { IN_EPOCH, IN_RUN } count;
  // Whether the lines and the rows of the table are about epochs or about steps.
  enum Tells { EPOCHS, STEPS } tells;
  kj::Own<LineWriter> (*writer)();
};
extern const kj::ArrayPtr<const LogStyle> LOG_STYLES;

}  // namespace runner
