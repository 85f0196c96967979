#include "tools/logs/epoch_lines.h"

#include <string.h>

#include "tools/logs/line_text.h"

namespace tools {
namespace {

// The longest name of a metric. Without a limit, a long line with many beginnings would be searched
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

}  // namespace tools
