#include "runner/log_table.h"

#include <kj/debug.h>

#include "configs/language/failure.h"
#include "runner/log_lines.h"

namespace runner {
namespace {

kj::StringPtr nameOf(StepStyle style) {
  switch (style) {
    case StepStyle::TF_REPLICA:
      return "tf_replica";
    case StepStyle::TF_AWS:
      return "tf_aws";
    case StepStyle::SCHLAG:
      return "schlag";
  }
  KJ_UNREACHABLE;
}

[[noreturn]] void refuse(kj::StringPtr name, uint64_t line, kj::StringPtr style, uint64_t otherLine,
    kj::StringPtr other) {
  configs::fail(name, " holds lines of two styles: line ", line, " is of ", style, ", and line ",
      otherLine, " of ", other, "; make a file of each.");
}

// Throws if the lines are not all of one style.
void requireOneStyle(
    kj::ArrayPtr<const StepLine> steps, kj::ArrayPtr<const LogLine> epochs, kj::StringPtr name) {
  auto& first = steps[0];
  auto style = nameOf(first.style);
  if (epochs.size() > 0) refuse(name, epochs[0].number, "mxnet", first.number, style);
  for (auto& line: steps) {
    if (line.style == first.style) continue;
    refuse(name, first.number, style, line.number, nameOf(line.style));
  }
}

}  // namespace

LogTable readLogTable(
    kj::ArrayPtr<const char> log, kj::StringPtr name, const TableOptions& options) {
  auto steps = readStepLines(log);
  if (steps.empty()) return readResultTable(log, name, options);
  requireOneStyle(steps, readLogLines(log), name);
  if (options.epochs.size() > 0 || options.run != nullptr) {
    configs::fail(name,
        " has a line a step: --epochs and --run choose in logs with a line an "
        "epoch; thin it with --every.");
  }
  return everyNth(stepTable(steps), options.every);
}

TextTable textOf(const LogTable& table) {
  KJ_SWITCH_ONEOF(table) {
    KJ_CASE_ONEOF(epochs, ResultTable) {
      return textOf(epochs);
    }
    KJ_CASE_ONEOF(steps, StepTable) {
      return textOf(steps);
    }
  }
  KJ_UNREACHABLE;
}

}  // namespace runner
