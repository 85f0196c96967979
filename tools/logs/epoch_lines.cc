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

// Reads a number. Returns false if there is none, or if endsHere() is false after it.
bool readValue(LineText rest, double& value) {
  KJ_IF_MAYBE(v, takeValue(rest)) {
    value = *v;
    return endsHere(rest);
  }
  return false;
}

// What follows `Epoch[4] `.
enum class Content { FIGURE, UNREADABLE_FIGURE, OTHER };

Content figureIn(LineText rest, LogLine& line) {
  return readValue(rest, line.value) ? Content::FIGURE : Content::UNREADABLE_FIGURE;
}

// Reads the text after `Epoch[4] `. Fills in all of `line` except epoch, rank and number.
Content readContent(LineText rest, LogLine& line) {
  line.metric = nullptr;
  if (take(rest, "Time cost=")) {
    line.kind = LogLineKind::TIME;
    return figureIn(rest, line);
  }
  if (take(rest, "Batch [")) {
    line.kind = LogLineKind::SPEED;
    // `[50]`, or the range `[0-50]` of MXNet 1.5 and later.
    if (takeCount(rest) == nullptr) return Content::OTHER;
    if (take(rest, "-") && takeCount(rest) == nullptr) return Content::OTHER;
    // In a log that was pasted into a page, a tab may have become spaces.
    bool isSpeed = take(rest, "]") && takeGap(rest) && take(rest, "Speed: ");
    return isSpeed ? figureIn(rest, line) : Content::OTHER;
  }
  if (take(rest, "Train-")) {
    line.kind = LogLineKind::TRAIN;
  } else if (take(rest, "Validation-")) {
    line.kind = LogLineKind::VALIDATION;
  } else {
    return Content::OTHER;
  }
  auto equals =
      static_cast<const char*>(memchr(rest.begin(), '=', kj::min(rest.size(), METRIC_BYTES_MAX)));
  if (equals == nullptr || equals == rest.begin()) return Content::OTHER;
  line.metric = kj::arrayPtr(rest.begin(), equals);
  auto value = kj::arrayPtr(equals + 1, rest.end());
  auto content = figureIn(value, line);
  takeSpaces(value);
  // A sentence of somebody else is not a figure.
  bool isName = memchr(line.metric.begin(), ' ', line.metric.size()) == nullptr;
  bool isSentence = !isName && (value.size() == 0 || strchr("0123456789.+-", value[0]) == nullptr);
  return content == Content::FIGURE || !isSentence ? content : Content::OTHER;
}

// Reads a line. Fills in `line` if the result is FIGURE.
Content readLine(LineText text, LogLine& line) {
  auto result = Content::OTHER;
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
        if (!take(rest, "] ")) continue;
        auto content = readContent(rest, line);
        if (content != Content::OTHER) result = content;
        if (content == Content::FIGURE) break;
      }
    }
  }
  return result;
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
  if (readLine(text, line) != Content::FIGURE) return nullptr;
  return line;
}

bool isUnreadableLogLine(LineText text) {
  LogLine ignored{};
  return readLine(text, ignored) == Content::UNREADABLE_FIGURE;
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
