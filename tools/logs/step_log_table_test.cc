#include "tools/logs/step_log_table.h"

#include <doctest/doctest.h>

#include "tests/text.h"

namespace tools {
namespace {

StepLogTable read(kj::StringPtr log) {
  return stepLogTable(readStepLines(log.asArray()));
}

// Returns the rows alone, as CSV.
kj::String rows(const StepLogTable& table) {
  auto text = formatTable(textOf(table), runner::TableFormat::CSV);
  kj::StringPtr head = "step,global step,loss,accuracy,s/batch\n";
  REQUIRE(text.startsWith(head));
  return kj::str(text.slice(head.size()));
}

TEST_CASE(
    "tf_replica: the time of a batch is the time since the previous line of the same worker") {
  CHECK(rows(read("100.00: Worker 0: training step 1 done (global step: 0)\n"
                  "100.25: Worker 1: training step 1 done (global step: 1)\n"
                  "101.00: Worker 0: training step 3 done (global step: 4)\n"
                  "101.25: Worker 1: training step 2 done (global step: 5)\n"
                  "102.00: Worker 1: training step 1 done (global step: 0)\n"
                  "After 6 training step(s), validation cross entropy = 1234.56\n")) ==
        "1,0,,,\n1,1,,,\n3,4,,,0.500000\n2,5,,,1.000000\n1,0,,,\n,6,1234.56,,\n");
}

TEST_CASE("tf_aws: has one row per line, in the order of the file") {
  CHECK(rows(read("session started\n"
                  "After 100 training steps (95 global steps), loss on training batch is 2.3, "
                  "accuracy is 0.1. (0.02 sec/batch)\n"
                  "After 100 training steps (97 global steps), accurac 0.92\n"
                  "total step: 2005, global_step: 2000\n")) ==
        "100,95,2.3,0.1,0.020000\n100,97,,0.92,\n2005,2000,,,\n");
}

TEST_CASE("schlag: counts steps over epochs of different lengths") {
  CHECK(rows(read("Step: 9,  Epoch:  1,  Batch:   3 of   3,  Cost: 2.5,  AvgTime: 1ms\n"
                  "Step: 10,  Epoch:  2,  Batch:   4 of   4,  Cost: 2.4,  AvgTime: 1ms\n"
                  "Step: 11,  Epoch:  1,  Batch:   3 of   3,  Cost: 2.3,  AvgTime: 1ms\n"
                  "Step: 12,  Epoch:  3,  Batch:   1 of   3,  Cost: 2.2,  AvgTime: 1ms\n"
                  "Step: 13,  Epoch: 11,  Batch:   1 of   5,  Cost: 2.1,  AvgTime: 1ms\n")) ==
        "3,9,2.5,,0.001000\n7,10,2.4,,0.001000\n3,11,2.3,,0.001000\n8,12,2.2,,0.001000\n"
        "51,13,2.1,,0.001000\n");
}

TEST_CASE("schlag: the final accuracy and cost of each worker make one row") {
  CHECK(rows(read("Test-Accuracy: 0.42\nTotal Time: 3.00s\nFinal Cost: 1.5\ndone\n"
                  "Test-Accuracy: 0.43\nTest-Accuracy: 0.44\nFinal Cost: 1.6\nFinal Cost: 1.7\n"
                  "Final Cost: 1.8\n")) == ",,1.5,0.42,\n,,1.6,0.43,\n,,1.7,0.44,\n,,1.8,,\n");
}

TEST_CASE("everyNth: keeps the steps that are multiples of N, and the final rows") {
  kj::Vector<kj::String> lines;
  for (uint step = 1; step <= 45; step++) {
    lines.add(kj::str("1.00: Worker 0: training step ", step, " done (global step: ", step, ")\n"));
  }
  lines.add(kj::str("After 45 training step(s), validation cross entropy = 7\n"));
  auto table = read(kj::strArray(lines, ""));
  CHECK(rows(everyNth(table, 20)) == "20,20,,,0.000000\n40,40,,,0.000000\n,45,7,,\n");
}

}  // namespace
}  // namespace tools
