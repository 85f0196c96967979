// runner/testing/test_run.h: a finished run for tests of tables.
#pragma once

#include "runner/tables/reported_run.h"

namespace runner {

// A run of one epoch with this accuracy.
inline ReportedRun testRun(kj::StringPtr label, double accuracy) {
  ReportedRun result;
  result.label = kj::str(label);
  auto& record = result.record;
  record.state = RunRecord::FINISHED;
  record.machine = {kj::str("A processor"), 2, 24ull << 30};
  record.instructionSet = kj::str("avx2");
  record.version = kj::str("1");
  auto epochs = kj::heapArray<EpochRecord>(1);
  auto& epoch = epochs[0];
  epoch.epoch = 1;
  epoch.step = 10;
  epoch.globalStep = 20;
  epoch.workers = 2;
  epoch.images = 1000;
  epoch.trainLoss = 0.5;
  epoch.trainAccuracy = 0.25;
  epoch.epoch_s = 2;
  epoch.images_per_s = 500;
  epoch.verbs = {0.01, 0.02, 0.03, 0.04, 0.05};
  epoch.pushed_bytes = 1 << 20;
  epoch.pulled_bytes = 1 << 20;
  epoch.learningRate = 0.1;
  epoch.validationLoss = 0.75;
  epoch.validationAccuracy = accuracy;
  record.epochRecords = kj::mv(epochs);
  auto rows = kj::heapArray<ResultRow>(1);
  rows[0] = ResultRow{1, kj::arr(MetricFigures{0.25, accuracy}), 2.0};
  result.table = RunTable(ResultTable{kj::mv(rows)});
  return result;
}

}  // namespace runner
