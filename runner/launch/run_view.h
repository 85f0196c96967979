// runner/launch/run_view.h: what the launcher shows a user of a run.
#pragma once

#include <kj/map.h>
#include <kj/string.h>

#include "runner/experiment/experiment.h"
#include "runner/launch/progress.h"
#include "runner/logs/job.capnp.h"
#include "runner/logs/log_styles.h"

namespace runner {

// Takes the coordinator's events one by one, and knows how far the run is.
class RunView {
public:
  // `epochs` and `steps` are how many the whole run takes.
  RunView(uint epochs, uint64_t steps): steps(steps), epochs(epochs) {}
  virtual ~RunView() noexcept(false) = default;
  KJ_DISALLOW_COPY(RunView);

  virtual void show(Event::Reader event) = 0;
  // A line for the user, on stderr, kept apart from what is redrawn there.
  virtual void say(kj::StringPtr line) = 0;
  // The run is over.
  virtual void end() = 0;

  // The largest step that any worker has reported; 0 before that.
  uint64_t reportedStep() const { return newestStep; }
  // What part of the run that is, 0 to 1.
  double partDone() const { return steps == 0 ? 0 : double(lastStep) / steps; }

  // Once the run has ended well.
  kj::Maybe<kj::String> weightsSha256;

protected:
  // Notes what the event tells of the run. Gives the text of a progress line if it has a new one.
  kj::Maybe<kj::String> note(Event::Reader event);
  // The line to say() at this event, if it calls for one. Of many bad records the first
  // BAD_RECORDS_SAID are named; the others are counted when a worker has ended its next part of the
  // run, and the next ones are named again.
  kj::Maybe<kj::String> noticeOf(Event::Reader event);
  static constexpr uint64_t BAD_RECORDS_SAID = 20;

  const uint64_t steps;

private:
  const uint epochs;
  uint64_t lastStep = 0;  // the largest that all workers are known to have done
  uint64_t newestStep = 0;
  uint64_t firstStep = 0;  // where the measurement for the remaining time began
  double firstTime_s = 0;
  uint64_t badRecords = 0;  // since they were last counted
};

// A run that is alone: log lines on stdout, one progress line on stderr. Of the lines on steps, in
// styles that write one for every few steps, stdout has of each worker the first, the last, and at
// most twenty between.
class SingleRunView final: public RunView {
public:
  // `experiment` must outlive the view.
  SingleRunView(const Experiment& experiment, uint epochs, uint64_t steps);

  void show(Event::Reader event) override;
  void say(kj::StringPtr line) override;
  // Takes the progress line away.
  void end() override;

  // How many lines of log.txt stdout does not have so far.
  uint64_t linesLeftOut() const { return leftOut; }

private:
  const Experiment& experiment;
  kj::Own<LineWriter> writer;
  kj::HashMap<uint, uint64_t> speeds;  // of each worker, events on its speed so far
  uint64_t leftOut = 0;

  bool isLeftOut(Event::Reader event);
  ProgressLine progress;
};

}  // namespace runner
