#include "runner/run_view.h"

#include <unistd.h>

#include "io/datasets.h"
#include "runner/role_options.h"

namespace runner {

RunView::RunView(const Experiment& experiment, uint epochs, uint64_t steps)
    : epochs(epochs),
      steps(steps),
      out(kj::AutoCloseFd(::dup(STDOUT_FILENO)), "standard output"),
      writer(experiment.log.style->writer()),
      progress(STDERR_FILENO) {}

void RunView::show(Event::Reader event) {
  for (auto& line: writer->lines(event)) {
    progress.clear();
    out.append(line);
  }
  switch (event.which()) {
    case Event::PROGRESS:
      showProgress(event);
      break;
    case Event::BAD_RECORD:
      say(kj::str("warning: ", roleName(event.getRole(), event.getIndex()), ": ",
          event.getBadRecord().getReason()));
      break;
    case Event::FINISHED:
      weightsSha256 = kj::str(event.getFinished().getWeightsSha256());
      break;
    default:
      break;
  }
}

void RunView::showProgress(Event::Reader event) {
  auto now = event.getProgress();
  lastStep = now.getStep();
  if (lastStep == 0) return;  // still starting
  Progress text{};
  text.epoch = now.getEpoch();
  text.epochs = epochs;
  text.step = lastStep;
  text.steps = steps;
  text.imagesPerS = now.getImagesPerS();
  text.loss = now.getLoss();
  text.accuracy = now.getAccuracy();
  if (firstStep == 0) {
    firstStep = lastStep;
    firstTime_s = event.getTimeS();
  } else if (lastStep > firstStep) {
    text.eta_s = (event.getTimeS() - firstTime_s) / (lastStep - firstStep) * (steps - lastStep);
  }
  progress.show(progressText(text));
}

void RunView::say(kj::StringPtr line) {
  progress.clear();
  LineFile(kj::AutoCloseFd(::dup(STDERR_FILENO)), "standard error").append(line);
}

void RunView::end() {
  progress.clear();
}

}  // namespace runner
