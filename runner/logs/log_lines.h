// runner/logs/log_lines.h: writes the classic log lines of a worker.
#pragma once

#include <kj/common.h>
#include <kj/string.h>
#include <kj/time.h>

namespace runner {

using kj::uint;

// The lines have the form of MXNet's from December 2015 to 0.9.3, so that parsers of that
// time can read our logs. None of them ends in a newline. Epochs count from 0 in logs (tables count
// from 1).

// Returns the moment of an event, from its seconds since 1970.
kj::Date momentOf(double time_s);

// Returns a moment in local time, with one space at its end: `2016-01-22 14:22:03,897 `.
kj::String logTime(kj::Date time);

// Returns the text before each line of worker `rank`, in local time and with one space at its end:
// `2016-01-22 14:22:03,897 Node[0] `.
kj::String logPrefix(kj::Date time, uint rank);

// `Epoch[4] Train-accuracy=0.449129`: `value` over all images of the epoch, measured during
// training.
kj::String trainLine(uint epoch, kj::StringPtr metric, double value);

// `Epoch[4] Time cost=10.623`: seconds of training, without validation and checkpoints.
kj::String timeLine(uint epoch, double seconds);

// `Epoch[4] Validation-accuracy=0.497656`.
kj::String validationLine(uint epoch, kj::StringPtr metric, double value);

// `Epoch[0] Batch [50]<TAB>Speed: 820.11 samples/sec<TAB>Train-accuracy=0.345109`: one worker's
// images/s since its last such line, and the metric so far.
kj::String speedLine(uint epoch, uint batch, double imagesPerS, kj::StringPtr metric, double value);

}  // namespace runner
