#include "tools/results/step_figures.h"

#include <kj/vector.h>

#include <algorithm>

namespace tools {

namespace {

using runner::StepRow;

// Returns a final figure: the mean over the workers that wrote one, or else the last figure of a
// batch.
kj::Maybe<double> endFigure(const StepLogTable& table, kj::Maybe<double> StepRow::*figure) {
  const double* last = nullptr;
  double sum = 0;
  uint count = 0;
  for (auto& row: table.rows) {
    KJ_IF_MAYBE(value, row.*figure) {
      if (!row.end) {
        last = value;
        continue;
      }
      sum += *value;
      count++;
    }
  }
  if (count > 0) return sum / count;
  if (last != nullptr) return *last;
  return nullptr;
}

kj::Maybe<double> batchSeconds(const StepLogTable& table) {
  kj::Vector<double> batches_s;
  double sum_s = 0;
  for (auto& row: table.rows) {
    KJ_IF_MAYBE(batch_s, row.batch_s) {
      batches_s.add(*batch_s);
      sum_s += *batch_s;
    }
  }
  if (batches_s.empty()) return nullptr;
  if (table.style == StepStyle::TF_AWS) return batches_s.back();
  if (table.style == StepStyle::TF_REPLICA) return sum_s / batches_s.size();
  auto middle = batches_s.begin() + batches_s.size() / 2;
  std::nth_element(batches_s.begin(), middle, batches_s.end());
  return *middle;
}

// Returns the updates per step of a worker: by the final lines of all workers, or else by the last
// line.
kj::Maybe<double> updatesPerStep(const StepLogTable& table) {
  double last = 0, sum = 0;
  uint ends = 0;
  for (auto& row: table.rows) {
    double steps = row.step.orDefault(0), updates = row.globalStep.orDefault(0);
    if (steps == 0 || updates == 0) continue;
    last = updates / steps;
    if (!row.end) continue;
    sum += steps / updates;
    ends++;
  }
  if (ends > 0) return ends / sum;
  if (last > 0) return last;
  return nullptr;
}

// Returns the seconds of a worker's step.
kj::Maybe<double> stepSeconds(const StepLogTable& table, kj::Maybe<double> batch_s) {
  if (table.style != StepStyle::TF_AWS) return batch_s;
  KJ_IF_MAYBE(update_s, batch_s) {
    return updatesPerStep(table).map([&](double updates) { return *update_s * updates; });
  }
  return nullptr;
}

}  // namespace

StepFigures endOf(const StepLogTable& table, uint64_t stepImages) {
  StepFigures end;
  for (auto& row: table.rows) {
    KJ_IF_MAYBE(steps, row.step) end.steps = kj::max(end.steps.orDefault(0), *steps);
    KJ_IF_MAYBE(steps, row.globalStep) {
      end.globalSteps = kj::max(end.globalSteps.orDefault(0), *steps);
    }
  }
  auto loss = endFigure(table, &StepRow::loss);
  (table.style == StepStyle::TF_REPLICA ? end.crossEntropySum : end.loss) = loss;
  end.accuracy = endFigure(table, &StepRow::accuracy);
  end.batch_s = batchSeconds(table);
  KJ_IF_MAYBE(step_s, stepSeconds(table, end.batch_s)) {
    // A very short time is printed as 0.
    if (*step_s > 0) end.images_per_s = stepImages / *step_s;
  }
  return end;
}

kj::Maybe<StepFigures> atStep(const StepLogTable& table, uint64_t globalStep) {
  for (auto& row: table.rows) {
    if (row.end || row.globalStep.orDefault(0) < globalStep) continue;
    StepFigures figures;
    figures.steps = row.step;
    figures.globalSteps = row.globalStep.map([](uint steps) { return uint64_t(steps); });
    figures.loss = row.loss;
    figures.accuracy = row.accuracy;
    return figures;
  }
  return nullptr;
}

}  // namespace tools
