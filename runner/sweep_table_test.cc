#include "runner/sweep_table.h"

#include <doctest/doctest.h>

#include "tests/text.h"

namespace runner {
namespace {

EpochRecord epoch(double train, kj::Maybe<double> validation, double epoch_s) {
  EpochRecord record;
  record.trainAccuracy = train;
  record.validationAccuracy = validation;
  record.epoch_s = epoch_s;
  return record;
}

TEST_CASE(
    "a sweep's table has a row a run: settings, last accuracies, time after the first, state") {
  const SweptKey key{kj::str("a.b"), {}, nullptr, nullptr};
  auto setting = [&](kj::StringPtr name) { return Setting{&key, {}, kj::str(name)}; };
  Setting settings[] = {setting("1"), setting("x|y"), setting("3"), setting("4")};
  RunRecord finished, failed, stopped, unfinished;
  finished.state = RunRecord::FINISHED;
  finished.epochRecords =
      kj::arr(epoch(0.5, 0.6, 100), epoch(0.7, 0.75, 2), epoch(0.8, 0.87125, 4));
  failed.state = RunRecord::FAILED;
  failed.reason = kj::str("worker 0:\nloss | nan");
  stopped.state = RunRecord::STOPPED;
  stopped.reason = kj::str("at epoch 1");
  stopped.epochRecords = kj::arr(epoch(0.5, nullptr, 100));

  auto one = [](const Setting& setting) { return kj::arrayPtr(&setting, 1); };
  SweepRow rows[] = {{one(settings[0]), finished}, {one(settings[1]), failed},
      {one(settings[2]), stopped}, {one(settings[3]), unfinished}};
  auto key0 = kj::str("b");
  CHECK(formatSweepTable(kj::arrayPtr(&key0, 1), rows) ==
        "| b | epochs | train-accuracy | valid-accuracy | time | state |\n"
        "| --- | --- | --- | --- | --- | --- |\n"
        "| 1 | 3 | 0.800000 | 0.871250 | 3.0 | finished |\n"
        "| x\\|y | 0 | - | - | - | failed: worker 0: loss \\| nan |\n"
        "| 3 | 1 | 0.500000 | - | 100.0 | stopped: at epoch 1 |\n"
        "| 4 | 0 | - | - | - | unfinished |\n");
}

}  // namespace
}  // namespace runner
