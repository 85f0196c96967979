#include "runner/logs/log_lines.h"

#include <doctest/doctest.h>
#include <stdlib.h>
#include <time.h>

namespace runner {
namespace {

bool same(kj::StringPtr a, kj::StringPtr b) {
  INFO(a.cStr(), " against ", b.cStr());
  CHECK(a == b);
  return a == b;
}

TEST_CASE("log lines: have the classic form") {
  same(trainLine(4, "accuracy", 0.449129), "Epoch[4] Train-accuracy=0.449129");
  same(timeLine(0, 10.6234), "Epoch[0] Time cost=10.623");
  same(validationLine(12, "accuracy", 0.5), "Epoch[12] Validation-accuracy=0.500000");
  same(speedLine(0, 50, 820.111, "accuracy", 0.345109),
      "Epoch[0] Batch [50]\tSpeed: 820.11 samples/sec\tTrain-accuracy=0.345109");
}

TEST_CASE("logPrefix: has local time, with milliseconds after a comma") {
  setenv("TZ", "UTC-2", 1);  // POSIX counts westward: this is two hours east of Greenwich.
  tzset();
  auto time = kj::UNIX_EPOCH + 1453465323897 * kj::MILLISECONDS;
  same(logPrefix(time, 0), "2016-01-22 14:22:03,897 Node[0] ");
  same(logPrefix(time - 890 * kj::MILLISECONDS, 11), "2016-01-22 14:22:03,007 Node[11] ");
  same(logPrefix(time - 897 * kj::MILLISECONDS + 99 * kj::MICROSECONDS, 1),
      "2016-01-22 14:22:03,000 Node[1] ");
  same(logPrefix(kj::UNIX_EPOCH - 1 * kj::MILLISECONDS, 1), "1970-01-01 01:59:59,999 Node[1] ");
}

}  // namespace
}  // namespace runner
