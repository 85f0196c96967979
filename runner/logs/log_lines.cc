#include "runner/logs/log_lines.h"

#include <kj/debug.h>
#include <time.h>

#include "runner/text/numbers.h"

namespace runner {

kj::Date momentOf(double time_s) {
  return kj::UNIX_EPOCH + int64_t(wholeNumber(time_s * 1e6)) * kj::MICROSECONDS;
}

kj::String logTime(kj::Date time) {
  int64_t ms = (time - kj::UNIX_EPOCH) / kj::MILLISECONDS;
  // Rounded down, so that times before 1970 keep a positive remainder.
  int64_t seconds = ms >= 0 ? ms / 1000 : -((999 - ms) / 1000);
  time_t clock = seconds;
  struct tm local;
  KJ_REQUIRE(localtime_r(&clock, &local) != nullptr, "this time has no date", seconds);
  char date[64];
  strftime(date, sizeof(date), "%Y-%m-%d %H:%M:%S", &local);
  int64_t fraction = ms - seconds * 1000;
  auto zeros = fraction < 10 ? "00" : fraction < 100 ? "0" : "";
  return kj::str(date, ',', zeros, fraction, ' ');
}

kj::String logPrefix(kj::Date time, uint rank) {
  return kj::str(logTime(time), "Node[", rank, "] ");
}

kj::String trainLine(uint epoch, kj::StringPtr metric, double value) {
  return kj::str("Epoch[", epoch, "] Train-", metric, '=', fixedPoint(value, 6));
}

kj::String timeLine(uint epoch, double seconds) {
  return kj::str("Epoch[", epoch, "] Time cost=", fixedPoint(seconds, 3));
}

kj::String validationLine(uint epoch, kj::StringPtr metric, double value) {
  return kj::str("Epoch[", epoch, "] Validation-", metric, '=', fixedPoint(value, 6));
}

kj::String speedLine(
    uint epoch, uint batch, double imagesPerS, kj::StringPtr metric, double value) {
  return kj::str("Epoch[", epoch, "] Batch [", batch, "]\tSpeed: ", fixedPoint(imagesPerS, 2),
      " samples/sec\tTrain-", metric, '=', fixedPoint(value, 6));
}

}  // namespace runner
