// runner/run_view.h: a run as its user sees it: log lines on stdout, one progress line on stderr.
#pragma once

#include <kj/string.h>

#include "runner/experiment.h"
#include "runner/files.h"
#include "runner/job.capnp.h"
#include "runner/log_styles.h"
#include "runner/progress.h"

namespace runner {

// Takes the coordinator's events one by one.
class RunView {
public:
  // `epochs` and `steps` are how many the whole run takes. `experiment` must outlive the view.
  RunView(const Experiment& experiment, uint epochs, uint64_t steps);

  // Prints the event's log lines, or moves the progress line. Throws if stdout is gone.
  void show(Event::Reader event);
  // A line for the user, kept apart from the progress line: on stderr.
  void say(kj::StringPtr line);
  // Takes the progress line away.
  void end();

  // The largest step that all workers are known to have done.
  uint64_t step() const { return lastStep; }

  // Once the run has ended well.
  kj::Maybe<kj::String> weightsSha256;

private:
  void showProgress(Event::Reader event);

  const uint epochs;
  const uint64_t steps;
  LineFile out;
  kj::Own<LineWriter> writer;
  ProgressLine progress;
  uint64_t lastStep = 0;
  uint64_t firstStep = 0;  // where the measurement for the remaining time began
  double firstTime_s = 0;
};

}  // namespace runner
