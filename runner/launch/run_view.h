// runner/launch/run_view.h: the launcher's output for the user about a run.
#pragma once

#include <kj/map.h>
#include <kj/string.h>

#include "runner/experiment/experiment.h"
#include "runner/launch/progress.h"
#include "runner/logs/job.capnp.h"
#include "runner/logs/log_styles.h"
#include "runner/logs/run_folder.h"

namespace runner {

// Returns a text about an event `membership`: "worker 2 has joined at step 40: 3 workers from now
// on".
kj::String changeText(Event::Reader event);

// Receives the coordinator's events one by one, and knows the progress of the run.
class RunView {
public:
  // `epochs` and `steps` are those of the whole run.
  RunView(uint epochs, uint64_t steps): steps(steps), epochs(epochs) {}
  virtual ~RunView() noexcept(false) = default;
  KJ_DISALLOW_COPY(RunView);

  virtual void show(Event::Reader event) = 0;
  // Writes a line for the user to stderr. The progress lines there stay intact.
  virtual void say(kj::StringPtr line) = 0;
  // Shows, in place of the progress, what the run waits for before its roles start. Empty: it waits
  // for nothing.
  virtual void showWait(kj::StringPtr text) = 0;
  // Called when the run is over.
  virtual void end() = 0;

  // Returns the largest step that a worker has reported. 0 if no worker has reported one.
  uint64_t reportedStep() const { return newestStep; }
  // Returns the part of the run that all workers have done, from 0 to 1.
  double partDone() const { return steps == 0 ? 0 : double(lastStep) / steps; }

  // Null unless the run has ended well.
  kj::Maybe<kj::String> weightsSha256;

protected:
  // Notes the progress that the event reports. Returns the text of a new progress line, or null.
  kj::Maybe<kj::String> note(Event::Reader event);
  // Returns the line to say() at this event, or null. Names at most BAD_RECORDS_SAID bad records,
  // and counts the others. When a worker ends its epoch or its validation, a line says how many
  // were counted, and the next bad records are named again. If several checkpoints in a row cannot
  // be written, only the first one gets a line.
  kj::Maybe<kj::String> noticeOf(Event::Reader event);
  static constexpr uint64_t BAD_RECORDS_SAID = 20;

  const uint64_t steps;

private:
  const uint epochs;
  uint64_t lastStep = 0;  // the largest step that all workers are known to have done
  uint64_t newestStep = 0;
  uint64_t firstStep = 0;  // the step at which the measurement for the remaining time began
  double firstTime_s = 0;
  uint64_t badRecords = 0;  // how many since their number was last shown
  bool isUnsaved = false;   // the latest checkpoint could not be written
};

// A single run: log lines on stdout, one progress line on stderr. In a log style with one line
// every few steps, stdout has only some lines of each worker: the first, the last, and at most
// twenty between them.
class SingleRunView final: public RunView {
public:
  // `experiment` must outlive the view.
  SingleRunView(const Experiment& experiment, uint epochs, uint64_t steps);

  // Reads the earlier events of the resumed run in `folder` without showing them. Later lines may
  // need facts from them, such as when a worker began.
  void noteBefore(const RunFolder& folder);

  void show(Event::Reader event) override;
  void say(kj::StringPtr line) override;
  void showWait(kj::StringPtr text) override;
  // Removes the progress line.
  void end() override;

  // Returns how many lines of log.txt are missing on stdout so far.
  uint64_t linesLeftOut() const { return leftOut; }

private:
  const Experiment& experiment;
  kj::Own<LineWriter> writer;
  kj::HashMap<uint, uint64_t> speeds;  // how many speed events each worker has sent
  uint64_t leftOut = 0;

  bool isLeftOut(Event::Reader event);
  ProgressLine progress;
};

}  // namespace runner
