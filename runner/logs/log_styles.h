// runner/logs/log_styles.h: the closed table of log styles. A style turns events into lines for
// people.
#pragma once

#include <kj/array.h>
#include <kj/memory.h>
#include <kj/string.h>
#include <kj/vector.h>

#include "runner/logs/job.capnp.h"

namespace runner {

using kj::uint;

// Turns the events of one run, in their order, into the lines of one style. Remembers facts about
// each worker that later lines need.
class LineWriter {
public:
  virtual ~LineWriter() noexcept(false) = default;

  // Returns the lines that `event` adds, without newlines; often none. Lines of different workers
  // are never mixed. They must not depend on earlier `speed` events, which RunLog::resume() leaves
  // out.
  virtual kj::Array<kj::String> lines(Event::Reader event) = 0;
};

// A row of the table of a run whose log has lines per step: the figures of one line. Figures that
// the line lacks are null.
struct StepRow {
  kj::Maybe<uint64_t> step;    // of the worker that wrote the line
  kj::Maybe<uint> globalStep;  // of the job
  kj::Maybe<double> loss;      // of the batch
  kj::Maybe<double> accuracy;  // of the batch, 0 to 1
  kj::Maybe<double> batch_s;   // seconds per batch, by the rule of the log's style

  // Whether the row has final figures instead of those of a batch. `loss` is tf_replica's
  // validation cross entropy (a sum over all records) or schlag's final cost. `accuracy` is
  // schlag's accuracy on the test records.
  bool end = false;
};

// Turns the events of one run, in their order, into the rows of its table. Figures are rounded as
// in the style's lines, so that parse_log makes the same table of log.txt.
class RowWriter {
public:
  virtual ~RowWriter() noexcept(false) = default;

  // Appends the rows that `event` adds to `rows`; often none.
  virtual void write(Event::Reader event, kj::Vector<StepRow>& rows) = 0;
};

// Returns the lines of `writer`, and those that every style has. One of these is `2016-01-22
// 14:22:03,897 server 0: 12 of 800 pushes came late and were dropped`, at the end of each epoch
// with such pushes. Another one names a checkpoint that could not be written. The last one says how
// the job ended, unless it went well.
kj::Array<kj::String> linesOf(LineWriter& writer, Event::Reader event);

// Returns "the job failed: worker 0: the loss is nan …", or that the job was interrupted. Empty for
// other events.
kj::String brokenEndOf(Event::Reader event);

// Returns "saving failed at step 80: cannot write …".
kj::String unsavedText(Event::Unsaved::Reader unsaved);

// A row of the table: a system whose logs people and parsers know.
struct LogStyle {
  const char* name;
  const char* doc;
  uint every;  // the default of log.every
  // From where each log.every-th step is counted. IN_EPOCH: from the beginning of the epoch. The
  // remaining steps at its end make a `partial` event. IN_RUN: from the beginning of the run.
  enum Count { IN_EPOCH, IN_RUN } count;
  kj::Own<LineWriter> (*writer)();
  // Null if the lines, and the rows of the table, are about epochs.
  kj::Own<RowWriter> (*rowWriter)();

  // Whether the lines, and the rows of the table, are about steps.
  bool isBySteps() const { return rowWriter != nullptr; }
};
extern const kj::ArrayPtr<const LogStyle> LOG_STYLES;

}  // namespace runner
