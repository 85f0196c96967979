#include "runner/logs/log_lines.h"

#include <kj/debug.h>
#include <string.h>
#include <time.h>

#include "runner/text/line_text.h"
#include "runner/text/numbers.h"

namespace runner {
namespace {

// No metric has a longer name. Without a limit, a long line with many beginnings would be searched
// from each of them to its end.
constexpr size_t METRIC_BYTES_MAX = 256;

char small(char c) {
  return c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c;
}

// Reads a number that ends with `rest` or at a space.
bool readValue(LineText rest, double& value) {
  KJ_IF_MAYBE(v, takeValue(rest)) {
    value = *v;
    return endsHere(rest);
  }
  return false;
}

// Reads the text after `Epoch[4] `. Fills in all of `line` except epoch, rank and number.
bool readContent(LineText rest, LogLine& line) {
  if (take(rest, "Time cost=")) {
    line.kind = LogLineKind::TIME;
    return readValue(rest, line.value);
  }
  if (take(rest, "Batch [")) {
    line.kind = LogLineKind::SPEED;
    // `[50]`, or the range `[0-50]` of MXNet 1.5 and later.
    if (takeCount(rest) == nullptr) return false;
    if (take(rest, "-") && takeCount(rest) == nullptr) return false;
    // In a log that was pasted into a page, a tab may have become spaces.
    return take(rest, "]") && takeGap(rest) && take(rest, "Speed: ") && readValue(rest, line.value);
  }
  if (take(rest, "Train-")) {
    line.kind = LogLineKind::TRAIN;
  } else if (take(rest, "Validation-")) {
    line.kind = LogLineKind::VALIDATION;
  } else {
    return false;
  }
  auto equals =
      static_cast<const char*>(memchr(rest.begin(), '=', kj::min(rest.size(), METRIC_BYTES_MAX)));
  if (equals == nullptr || equals == rest.begin()) return false;
  line.metric = kj::arrayPtr(rest.begin(), equals);
  return readValue(kj::arrayPtr(equals + 1, rest.end()), line.value);
}

}  // namespace

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

bool isCalled(kj::ArrayPtr<const char> metric, kj::StringPtr name) {
  if (metric.size() != name.size()) return false;
  for (size_t i: kj::indices(metric)) {
    if (small(metric[i]) != small(name[i])) return false;
  }
  return true;
}

kj::Maybe<LogLine> readLogLine(LineText text, uint64_t number) {
  LogLine line{};
  line.number = number;
  // Searches from bracket to bracket, in one pass, however long the line is.
  const char* position = text.begin();
  while (auto bracket = static_cast<const char*>(memchr(position, '[', text.end() - position))) {
    position = bracket + 1;
    auto word = kj::arrayPtr(text.begin(), bracket);
    auto rest = kj::arrayPtr(position, text.end());
    if (endsWith(word, "Node")) {
      KJ_IF_MAYBE(rank, takeCount(rest)) {
        if (startsWith(rest, "] ")) line.rank = *rank;
      }
    } else if (endsWith(word, "Epoch") || endsWith(word, "Iteration") || endsWith(word, "Iter")) {
      KJ_IF_MAYBE(epoch, takeCount(rest)) {
        line.epoch = *epoch;
        if (take(rest, "] ") && readContent(rest, line)) return line;
      }
    }
  }
  return nullptr;
}

kj::Vector<LogLine> readLogLines(LineText log) {
  kj::Vector<LogLine> lines;
  eachLine(log, [&](LineText text, uint64_t number) {
    KJ_IF_MAYBE(line, readLogLine(text, number)) {
      lines.add(*line);
    }
  });
  return lines;
}

}  // namespace runner
