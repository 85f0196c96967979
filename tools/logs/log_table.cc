#include "tools/logs/log_table.h"

#include <kj/debug.h>
#include <kj/map.h>

#include "configs/language/failure.h"
#include "tools/logs/epoch_lines.h"
#include "tools/logs/line_text.h"

namespace tools {
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
  configs::fail(name, " contains lines of two styles: line ", line, " has style ", style,
      ", and line ", otherLine, " has style ", other, ". Put each style into a separate file.");
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

// Workers that begin together may see the first updates in any order.
constexpr uint FIRST_UPDATES = 20;

// Reads the lines of one run in order, and detects when another run begins. The sign is that the
// updates of the whole job go back. They never do within a run, also if a worker begins late,
// begins again, or begins after another one has ended.
class RunWatch {
public:
  // Returns the earlier line that proves that `line` belongs to another run, or null. `line` then
  // belongs to the current run.
  kj::Maybe<const StepLine&> follow(const StepLine& line) {
    KJ_IF_MAYBE(globalStep, line.globalStep) {
      KJ_IF_MAYBE(rank, line.rank) return followWorker(line, *rank, *globalStep);
      if (line.end) return nullptr;
      // Lines of workers that cannot be told apart may come a little late, but not half a run late.
      if (*globalStep < greatest / 2 && greatest > FIRST_UPDATES) return *furthest;
      if (furthest == nullptr || *globalStep > greatest) {
        furthest = &line;
        greatest = *globalStep;
      }
    }
    return nullptr;
  }

private:
  kj::Maybe<const StepLine&> followWorker(const StepLine& line, uint rank, uint globalStep) {
    uint step = line.step.orDefault(0);
    auto& last = lasts.findOrCreate(rank, [&]() { return decltype(lasts)::Entry{rank, &line}; });
    uint lastStep = last->step.orDefault(0), lastGlobalStep = last->globalStep.orDefault(0);
    bool back = step <= lastStep && globalStep < lastGlobalStep;
    bool again = last != &line && step == lastStep && globalStep == lastGlobalStep;
    if (back || again) return *last;
    last = &line;
    return nullptr;
  }

  kj::HashMap<uint, const StepLine*> lasts;  // the last line of each worker with a rank
  const StepLine* furthest = nullptr;        // the furthest line of workers without a rank
  uint greatest = 0;                         // its global step
};

void requireOneRun(kj::ArrayPtr<const StepLine> steps, kj::StringPtr name) {
  RunWatch watch;
  for (auto& line: steps) {
    KJ_IF_MAYBE(before, watch.follow(line)) {
      configs::fail(name, " contains several runs, or the logs of several workers: line ",
          before->number, " has global step ", KJ_ASSERT_NONNULL(before->globalStep), ", and line ",
          line.number, " is back at ", KJ_ASSERT_NONNULL(line.globalStep),
          ". Put each into a separate file.");
    }
  }
}

bool areOnlySpeeds(kj::ArrayPtr<const LogLine> lines) {
  for (auto& line: lines) {
    if (line.kind != LogLineKind::SPEED) return false;
  }
  return lines.size() > 0;
}

}  // namespace

LogTable readLogTable(
    kj::ArrayPtr<const char> log, kj::StringPtr name, const TableOptions& options) {
  constexpr kj::StringPtr UTF16_BEGINNINGS[] = {"\xff\xfe"_kj, "\xfe\xff"_kj};
  for (auto begin: UTF16_BEGINNINGS) {
    if (startsWith(log, begin)) {
      configs::fail(name, " is UTF-16 text, as `>` in PowerShell writes it: convert it with ",
          "`iconv -f UTF-16 -t UTF-8`");
    }
  }
  auto steps = readStepLines(log);
  bool choosesOfEpochs = options.epochs.size() > 0 || options.run != nullptr ||
                         options.metrics.size() > 0 || options.combine != Combine::MEAN;
  if (steps.empty()) {
    auto lines = readLogLines(log);
    if (!areOnlySpeeds(lines)) return epochLogTable(lines, name, options);
    if (choosesOfEpochs || options.every != 1) {
      configs::fail(name,
          " has only speed lines: --every, --epochs, --run, --metric-names and --op max are for "
          "logs with lines per epoch or step.");
    }
    return speedTable(lines);
  }
  requireOneStyle(steps, readLogLines(log), name);
  requireOneRun(steps, name);
  if (choosesOfEpochs) {
    configs::fail(name,
        " has one line per step: --epochs, --run, --metric-names and --op max are for logs with "
        "lines per epoch. Choose steps with --every.");
  }
  auto table = everyNth(stepLogTable(steps), options.every);
  // The final rows are always kept. They are not steps.
  bool hasStep = options.every == 1;
  for (auto& row: table.rows) hasStep = hasStep || !row.end;
  if (!hasStep) {
    configs::fail(name, " has no step that is a multiple of ", options.every, ".");
  }
  return kj::mv(table);
}

runner::TextTable textOf(const LogTable& table) {
  KJ_SWITCH_ONEOF(table) {
    KJ_CASE_ONEOF(epochs, EpochLogTable) {
      return textOf(epochs);
    }
    KJ_CASE_ONEOF(steps, StepLogTable) {
      return textOf(steps);
    }
    KJ_CASE_ONEOF(speeds, SpeedTable) {
      return textOf(speeds);
    }
  }
  KJ_UNREACHABLE;
}

}  // namespace tools
