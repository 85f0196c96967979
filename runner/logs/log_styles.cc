#include "runner/logs/log_styles.h"

#include <kj/vector.h>

#include "configs/language/printable.h"
#include "runner/logs/log_lines.h"
#include "runner/logs/log_writers.h"
#include "runner/text/numbers.h"

namespace runner {
namespace {

constexpr LogStyle ROWS[] = {
    {"mxnet",
        "The format of MXNet in 2016, with lines such as `2016-01-22 14:22:03,897 Node[0] Epoch[4] "
        "Train-accuracy=0.449129`.",
        50, LogStyle::IN_EPOCH, newMxnetWriter, nullptr},
    {"tf_replica",
        "The format of TensorFlow's mnist_replica.py, with lines such as `1502345678.234567: "
        "Worker 0: training step 1 done (global step: 0)`. The log begins with a list of the keys "
        "on each server, and ends with the cross entropy of the validation.",
        1, LogStyle::IN_RUN, newTfReplicaWriter, newTfReplicaRows},
    {"tf_aws",
        "The format of a TensorFlow example for GPU servers on AWS, with lines such as `After 100 "
        "training steps (95 global steps), loss on training batch is 2.3021, accuracy is 0.12. "
        "(0.021 sec/batch)`. The log begins with a list of the keys on each server. sec/batch is "
        "the time since the start, divided by the number of global steps.",
        100, LogStyle::IN_RUN, newTfAwsWriter, newTfAwsRows},
    {"schlag",
        "The format of I. Schlag's example, with lines such as `Step: 100,  Epoch:  1,  Batch: 100 "
        "of 550,  Cost: 2.9133,  AvgTime: 3.11ms`. The log ends with test accuracy, time and cost.",
        100, LogStyle::IN_EPOCH, newSchlagWriter, newSchlagRows},
};

}  // namespace

kj::Array<kj::String> linesOf(LineWriter& writer, Event::Reader event) {
  auto lines = writer.lines(event);
  auto time = momentOf(event.getTimeS());
  auto end = brokenEndOf(event);
  if (end.size() > 0) return kj::arr(kj::str(logTime(time), configs::printable(end)));
  if (event.isUnsaved()) {
    auto text = configs::printable(unsavedText(event.getUnsaved()));
    return kj::arr(kj::str(logTime(time), "warning: ", text));
  }
  if (!event.isCounted()) return lines;
  auto pushes = event.getCounted().getPushes();
  if (pushes.getDropped() == 0) return lines;
  kj::Vector<kj::String> all;
  for (auto& line: lines) all.add(kj::mv(line));
  all.add(
      kj::str(logTime(time), "server ", event.getIndex(), ": ", wholeNumber(pushes.getDropped()),
          " of ", wholeNumber(pushes.getPushed()), " pushes came late and were dropped"));
  return all.releaseAsArray();
}

kj::String brokenEndOf(Event::Reader event) {
  if (event.isFailed()) return kj::str("the job failed: ", event.getFailed().getReason());
  if (event.isInterrupted()) {
    return kj::str("the job was interrupted: ", event.getInterrupted().getReason());
  }
  return nullptr;
}

kj::String unsavedText(Event::Unsaved::Reader unsaved) {
  return kj::str("saving failed at step ", unsaved.getStep(), ": ", unsaved.getReason());
}

constinit const kj::ArrayPtr<const LogStyle> LOG_STYLES = ROWS;

}  // namespace runner
