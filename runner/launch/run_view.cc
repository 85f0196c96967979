#include "runner/launch/run_view.h"

#include <unistd.h>

#include <cmath>

#include "io/datasets/datasets.h"
#include "runner/logs/events.h"
#include "runner/logs/role_names.h"
#include "runner/system/command_line.h"
#include "runner/system/terminal.h"
#include "runner/text/numbers.h"

namespace runner {

kj::String changeText(Event::Reader event) {
  auto change = event.getMembership();
  return kj::str(roleName(Role::WORKER, event.getIndex()),
      change.getJoined() ? " has joined at step "
      : change.getLeft() ? " has left before step "
                         : " was lost in step ",
      change.getStep(), ": ", counted(change.getWorkers(), "worker"), " from now on");
}

kj::Maybe<kj::String> RunView::note(Event::Reader event) {
  if (event.isFinished()) weightsSha256 = kj::str(event.getFinished().getWeightsSha256());
  if (event.isSpeed()) newestStep = kj::max(newestStep, event.getSpeed().getStep());
  if (!event.isProgress()) return nullptr;
  auto now = event.getProgress();
  lastStep = now.getStep();
  newestStep = kj::max(newestStep, lastStep);
  if (lastStep == 0 && now.getStuckS() == 0) return nullptr;  // still starting
  Progress text{};
  text.epoch = now.getEpoch();
  text.epochs = epochs;
  text.step = lastStep;
  text.steps = steps;
  if (now.getImagesPerS() > 0) text.imagesPerS = now.getImagesPerS();
  text.readShare = now.getReadShare();
  text.stuckWorker = now.getStuckWorker();
  text.stuck_s = now.getStuckS();
  // NaN: no figure has been measured yet.
  if (!std::isnan(now.getLoss())) text.loss = now.getLoss();
  if (!std::isnan(now.getAccuracy())) text.accuracy = now.getAccuracy();
  text.validating = now.getValidating();
  if (firstStep == 0) {
    firstStep = lastStep;
    firstTime_s = event.getTimeS();
  } else if (lastStep > firstStep && lastStep < steps && !text.validating) {
    text.eta_s = (event.getTimeS() - firstTime_s) / (lastStep - firstStep) * (steps - lastStep);
  }
  return progressText(text);
}

kj::Maybe<kj::String> RunView::noticeOf(Event::Reader event) {
  if (event.isBadRecord()) {
    if (++badRecords > BAD_RECORDS_SAID) return nullptr;
    return kj::str("warning: ", roleName(event.getRole(), event.getIndex()), ": ",
        event.getBadRecord().getReason());
  }
  if (event.isTrained() || event.isValidated() || event.isFinished()) {
    auto count = badRecords;
    badRecords = 0;
    if (count <= BAD_RECORDS_SAID) return nullptr;
    return kj::str("warning: ", count - BAD_RECORDS_SAID,
        " more bad records; events.jsonl and the logs of the roles name them all");
  }
  if (event.isSaved()) isUnsaved = false;
  if (event.isUnsaved()) {
    if (isUnsaved) return nullptr;
    isUnsaved = true;
    return kj::str("warning: ", unsavedText(event.getUnsaved()),
        ". The run continues, and will try again later");
  }
  if (event.isMembership()) return changeText(event);
  if (event.isLostNewcomer()) {
    return kj::str(roleName(event.getRole(), event.getIndex()), " was lost before it had joined");
  }
  if (event.isWaiting()) {
    auto waiting = event.getWaiting();
    double waited_s = std::round(waiting.getWaitedS() * 10) / 10;
    return kj::str("waiting for ", waiting.getRoles(), ": not joined after ", waited_s, " s",
        inParentheses(waiting.getRefused()), "; the run fails after ", waiting.getLimitS(),
        " s (cluster.start_timeout_s)");
  }
  return nullptr;
}

SingleRunView::SingleRunView(const Experiment& experiment, uint epochs, uint64_t steps)
    : RunView(epochs, steps),
      experiment(experiment),
      writer(experiment.log.style->writer()),
      progress(STDERR_FILENO) {}

void SingleRunView::noteBefore(const RunFolder& folder) {
  auto read = [&]() {
    eachEventButSpeed(folder, [&](Event::Reader event) { linesOf(*writer, event); });
  };
  // The coordinator already reports events that cannot be read.
  kj::runCatchingExceptions(read);
}

void SingleRunView::show(Event::Reader event) {
  bool left = isLeftOut(event);
  for (auto& line: linesOf(*writer, event)) {
    if (left) {
      leftOut++;
      continue;
    }
    progress.clear();
    print(kj::str(line, '\n'));
  }
  KJ_IF_MAYBE(text, note(event)) progress.show(*text);
  KJ_IF_MAYBE(line, noticeOf(event)) say(*line);
}

bool SingleRunView::isLeftOut(Event::Reader event) {
  constexpr uint64_t SHOWN = 20;
  auto& log = experiment.log;
  if (!event.isSpeed() || !log.style->isBySteps()) return false;
  uint64_t all = steps / log.every;
  uint64_t stride = kj::max(uint64_t(1), (all + SHOWN - 1) / SHOWN);
  uint64_t number =
      ++speeds.findOrCreate(event.getIndex(), [&]() -> kj::HashMap<uint, uint64_t>::Entry {
        return {event.getIndex(), 0};
      });
  bool isLast = event.getSpeed().getStep() + log.every > steps;
  return number > 1 && number % stride != 0 && !isLast;
}

void SingleRunView::say(kj::StringPtr line) {
  progress.clear();
  tell(line);
}

void SingleRunView::showWait(kj::StringPtr text) {
  if (text.size() == 0) return progress.clear();
  progress.show(text);
}

void SingleRunView::end() {
  progress.clear();
}

}  // namespace runner
