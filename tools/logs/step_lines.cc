#include "tools/logs/step_lines.h"

#include <kj/debug.h>

#include "tools/logs/line_text.h"

namespace tools {
namespace {

enum class Content { LINE, UNREADABLE, OTHER };

// A number that does not end where it should cannot be read. Text without a number is not a line.
Content contentOf(bool isWhole, const kj::Maybe<double>& value) {
  if (isWhole) return Content::LINE;
  return value == nullptr ? Content::OTHER : Content::UNREADABLE;
}

Content lineOrOther(bool isLine) {
  return isLine ? Content::LINE : Content::OTHER;
}

// Whether a number that ends where `rest` begins is only the first part of one: `2` of `2,1`, or
// of `2%`.
bool goesOn(LineText rest) {
  if (rest.size() > 0 && rest[0] == '%') return true;
  return rest.size() > 1 && (rest[0] == ',' || rest[0] == '.') && rest[1] >= '0' && rest[1] <= '9';
}

// Whether `rest` is the beginning of `word`, as at the end of a log that was cut off.
bool isCutOff(LineText rest, kj::StringPtr word) {
  return rest.size() < word.size() && startsWith(word.asArray(), kj::heapString(rest));
}

// Reads `word`, spaces and a number, which goes to `count`, from the front of `rest`. Returns
// whether they are there.
bool takeField(LineText& rest, kj::StringPtr word, uint& count) {
  if (!take(rest, word)) return false;
  takeSpaces(rest);
  KJ_IF_MAYBE(c, takeCount(rest)) {
    count = *c;
    takeSpaces(rest);
    return true;
  }
  return false;
}

bool takeField(LineText& rest, kj::StringPtr word, kj::Maybe<double>& value) {
  if (!take(rest, word)) return false;
  takeSpaces(rest);
  value = takeValue(rest);
  return value != nullptr;
}

// Returns the text after the first `word` of `text`.
kj::Maybe<LineText> after(LineText text, kj::StringPtr word) {
  KJ_IF_MAYBE(place, find(text, word)) {
    return text.slice(*place + word.size(), text.size());
  }
  return nullptr;
}

// Removes `word` from the end of `front`, if it is there.
bool takeFromEnd(LineText& front, kj::StringPtr word) {
  if (!endsWith(front, word)) return false;
  front = front.slice(0, front.size() - word.size());
  return true;
}

// `front` is the text before `training step` in `After 100 training steps`.
bool readAfter(LineText front, kj::Maybe<uint>& steps) {
  if (!takeFromEnd(front, " ")) return false;
  steps = takeCountFromEnd(front);
  return steps != nullptr && endsWith(front, "After ");
}

// Returns the last word of `text` as a number.
kj::Maybe<double> lastValue(LineText text) {
  size_t begin = text.size();
  while (begin > 0 && text[begin - 1] > ' ') begin--;
  auto word = text.slice(begin, text.size());
  auto value = takeValue(word);
  if (word.size() > 0) return nullptr;
  return value;
}

// `1502345678.234567: Worker 0: training step 1 done (global step: 0)`
bool readReplicaStep(LineText front, LineText rest, StepLine& line) {
  line.style = StepStyle::TF_REPLICA;
  uint step, globalStep;
  if (!takeField(rest, " ", step) || !takeField(rest, "done (global step:", globalStep) ||
      !take(rest, ")")) {
    return false;
  }
  line.step = step;
  line.globalStep = globalStep;
  if (!takeFromEnd(front, ": ")) return false;
  line.rank = takeCountFromEnd(front);
  if (line.rank == nullptr || !takeFromEnd(front, "Worker ")) return false;
  if (takeFromEnd(front, ": ")) line.moment_s = lastValue(front);
  return true;
}

// `After 200 training step(s), validation cross entropy = 1234.56`
Content readReplicaEnd(LineText front, LineText rest, StepLine& line) {
  line.style = StepStyle::TF_REPLICA;
  line.end = true;
  bool hasValue = takeField(rest, "(s), validation cross entropy =", line.loss) &&
                  readAfter(front, line.globalStep);
  return hasValue ? contentOf(endsHere(rest), line.loss) : Content::OTHER;
}

bool isLetter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

// Returns the first number in `rest` before any `(`, where other figures begin. `nan` and `inf`
// count if they are whole words.
kj::Maybe<double> firstValue(LineText& rest) {
  bool inWord = true;  // true if `rest` follows a letter
  for (; rest.size() > 0 && rest[0] != '('; rest = rest.slice(1, rest.size())) {
    bool word = isLetter(rest[0]) && !inWord;
    inWord = isLetter(rest[0]);
    if (!word && !(rest[0] >= '0' && rest[0] <= '9') && rest[0] != '.') continue;
    auto tail = rest;
    KJ_IF_MAYBE(value, takeValue(tail)) {
      if (word && tail.size() > 0 && isLetter(tail[0])) continue;
      rest = tail;
      return *value;
    }
  }
  return nullptr;
}

// `After 100 training steps (95 global steps), loss on training batch is 2.30259, accuracy is
// 0.125. (0.021 sec/batch)`
Content readAwsStep(LineText front, LineText rest, StepLine& line) {
  line.style = StepStyle::TF_AWS;
  uint globalStep;
  if (!takeField(rest, "s (", globalStep) || !take(rest, "global steps)")) return Content::OTHER;
  line.globalStep = globalStep;
  if (!readAfter(front, line.step)) return Content::OTHER;
  KJ_IF_MAYBE(loss, after(rest, "loss on training batch is ")) {
    rest = *loss;
    line.loss = takeValue(rest);
    if (line.loss != nullptr && goesOn(rest)) return Content::UNREADABLE;
  }
  KJ_IF_MAYBE(accuracy, after(rest, "accura")) {
    rest = *accuracy;
    line.accuracy = firstValue(rest);
    if (line.accuracy != nullptr && goesOn(rest)) return Content::UNREADABLE;
  }
  KJ_IF_MAYBE(time, after(rest, "(")) {
    auto value = takeValue(*time);
    if (value != nullptr && goesOn(*time)) return Content::UNREADABLE;
    if (take(*time, " sec/batch)")) line.batch_s = value;
  }
  return Content::LINE;
}

// `Step: 100,  Epoch:  1,  Batch: 100 of 550,  Cost: 2.9133,  AvgTime: 3.11ms`, from the first
// number on.
Content readSchlagStep(LineText rest, StepLine& line) {
  line.style = StepStyle::SCHLAG;
  auto comma = [&]() {
    bool is = take(rest, ",");
    takeSpaces(rest);
    return is;
  };
  uint globalStep;
  kj::Maybe<double> batch_ms;
  bool begins = takeField(rest, "", globalStep) && comma() &&
                takeField(rest, "Epoch:", line.epoch) && comma() &&
                takeField(rest, "Batch:", line.batch) && takeField(rest, "of", line.epochBatches) &&
                comma() && takeField(rest, "Cost:", line.loss);
  if (!begins) return Content::OTHER;
  bool isWhole = comma() && takeField(rest, "AvgTime:", batch_ms) && take(rest, "ms");
  bool isCut = isCutOff(rest, "AvgTime:") || isCutOff(rest, "ms");
  if (!isWhole) return isCut ? Content::OTHER : Content::UNREADABLE;
  line.globalStep = globalStep;
  line.batch_s = KJ_ASSERT_NONNULL(batch_ms) / 1e3;
  return Content::LINE;
}

Content readEndValue(LineText rest, StepStyle style, StepLine& line, kj::Maybe<double>& value) {
  line.style = style;
  line.end = true;
  value = takeValue(rest);
  return contentOf(value != nullptr && endsHere(rest), value);
}

// `total step: 2005, global_step: 2000`, from the first number on.
bool readAwsEnd(LineText rest, StepLine& line) {
  line.style = StepStyle::TF_AWS;
  line.end = true;
  line.step = takeCount(rest);
  uint globalStep;
  if (line.step == nullptr || !takeField(rest, ", global_step:", globalStep)) return false;
  line.globalStep = globalStep;
  return true;
}

// Reads a line. Fills in `line` if the result is LINE.
Content readLine(LineText text, StepLine& line) {
  // Each function looks only for the first occurrence of its words. One pass is enough, however
  // long the line is.
  constexpr kj::StringPtr TRAINING_STEP = "training step"_kj;
  KJ_IF_MAYBE(place, find(text, TRAINING_STEP)) {
    auto front = text.slice(0, *place);
    auto rest = text.slice(*place + TRAINING_STEP.size(), text.size());
    if (startsWith(rest, " ")) return lineOrOther(readReplicaStep(front, rest, line));
    if (startsWith(rest, "(")) return readReplicaEnd(front, rest, line);
    return readAwsStep(front, rest, line);
  }
  KJ_IF_MAYBE(rest, after(text, "total step: ")) return lineOrOther(readAwsEnd(*rest, line));
  KJ_IF_MAYBE(rest, after(text, "Step: ")) return readSchlagStep(*rest, line);
  KJ_IF_MAYBE(rest, after(text, "Test-Accuracy: ")) {
    return readEndValue(*rest, StepStyle::SCHLAG, line, line.accuracy);
  }
  KJ_IF_MAYBE(rest, after(text, "Final Cost: ")) {
    return readEndValue(*rest, StepStyle::SCHLAG, line, line.loss);
  }
  return Content::OTHER;
}

}  // namespace

kj::Maybe<StepLine> readStepLine(LineText text, uint64_t number) {
  StepLine line{};
  line.number = number;
  if (readLine(text, line) != Content::LINE) return nullptr;
  return line;
}

bool isUnreadableStepLine(LineText text) {
  StepLine ignored{};
  return readLine(text, ignored) == Content::UNREADABLE;
}

kj::Vector<StepLine> readStepLines(LineText log) {
  kj::Vector<StepLine> lines;
  eachLine(log, [&](LineText text, uint64_t number) {
    KJ_IF_MAYBE(line, readStepLine(text, number)) {
      lines.add(*line);
    }
  });
  return lines;
}

}  // namespace tools
