#include "tools/logs/epoch_log_table.h"

#include <doctest/doctest.h>
#include <kj/exception.h>

#include "runner/logs/log_lines.h"
#include "tests/text.h"

namespace tools {
namespace {

kj::String markdown(kj::StringPtr log, const TableOptions& options = {}) {
  return formatTable(
      textOf(readEpochLogTable(log.asArray(), "x.log", options)), runner::TableFormat::MARKDOWN);
}

// Returns the rows alone.
kj::String rows(kj::StringPtr log, const TableOptions& options = {}) {
  auto text = markdown(log, options);
  kj::StringPtr head =
      "| epoch | train-accuracy | valid-accuracy | time |\n| --- | --- | --- | --- |\n";
  REQUIRE(text.startsWith(head));
  return kj::str(text.slice(head.size()));
}

// Returns the message of readEpochLogTable()'s exception, or an empty text.
kj::String complaint(kj::StringPtr log, const TableOptions& options = {}) {
  KJ_IF_MAYBE(exception, kj::runCatchingExceptions([&]() { markdown(log, options); })) {
    return kj::str(exception->getDescription());
  }
  return nullptr;
}

TableOptions maximum() {
  TableOptions options;
  options.combine = Combine::MAX;
  return options;
}

TableOptions onlyRun(uint run) {
  TableOptions options;
  options.run = run;
  return options;
}

TEST_CASE("readEpochLogTable: averages over the workers of an epoch") {
  CHECK(rows("Node[0] Epoch[0] Train-accuracy=0.345109\n"
             "Node[1] Epoch[0] Train-accuracy=0.344175\n"
             "Node[0] Epoch[0] Time cost=10.623\n"
             "Node[0] Epoch[0] Validation-accuracy=0.497656\n"
             "Node[1] Epoch[0] Time cost=10.624\n"
             "Node[1] Epoch[0] Validation-accuracy=0.493164\n") ==
        "|  1 | 0.344642 | 0.495410 | 10.6 |\n");
}

TEST_CASE("readEpochLogTable: max takes the greatest accuracies, but the mean of the times") {
  auto log =
      "Epoch[9] Train-accuracy=0.25\nEpoch[9] Train-accuracy=nan\nEpoch[9] Validation-accuracy=-1\n"
      "Epoch[9] Time cost=1\nEpoch[9] Time cost=3\n"_kj;
  CHECK(rows(log, maximum()) == "| 10 | 0.250000 | -1.000000 | 2.0 |\n");
  CHECK(rows(log) == "| 10 | nan | -1.000000 | 2.0 |\n");
}

TEST_CASE("readEpochLogTable: sorts epochs, and missing figures have empty cells") {
  CHECK(rows("Epoch[11] Validation-accuracy=0.75\nEpoch[1] Time cost=2\n"
             "Epoch[2] Train-accuracy=0.5\nEpoch[2] Train-cross-entropy=1.5\n") ==
        "|  2 |  |  | 2.0 |\n|  3 | 0.500000 |  |  |\n| 12 |  | 0.750000 |  |\n");
}

TEST_CASE("readEpochLogTable: `every` and a list of epochs choose rows") {
  auto log =
      "Epoch[0] Time cost=1\nEpoch[1] Time cost=2\nEpoch[2] Time cost=3\nEpoch[3] Time cost=4\n"_kj;
  TableOptions every;
  every.every = 2;
  CHECK(rows(log, every) == "|  2 |  |  | 2.0 |\n|  4 |  |  | 4.0 |\n");
  TableOptions list;
  list.epochs = kj::heapArray<uint>({3, 1, 7});
  CHECK(rows(log, list) == "|  1 |  |  | 1.0 |\n|  3 |  |  | 3.0 |\n");
  CHECK(readEpochLogTable(log.asArray(), "x.log", list).absent ==
        "x.log has no epoch 7: it has epochs 1 to 4.");
}

TEST_CASE("readEpochLogTable: a table without rows is an error that names the epochs of the log") {
  auto log = "Epoch[0] Time cost=1\nEpoch[1] Time cost=2\nEpoch[2] Time cost=3\n"_kj;
  TableOptions list;
  list.epochs = kj::heapArray<uint>({9, 20});
  CHECK(complaint(log, list) == "x.log has no epoch 9, 20: it has epochs 1 to 3.");
  CHECK(complaint("Epoch[4] Time cost=1\n", list) ==
        "x.log has no epoch 9, 20: it has only epoch 5.");
  CHECK(complaint("Epoch[4] Time cost=1\nEpoch[9] Time cost=1\n", list) ==
        "x.log has no epoch 9, 20: it has epochs 5, 10.");
  TableOptions every;
  every.every = 5;
  CHECK(
      complaint(log, every) == "x.log has no epoch that is a multiple of 5: it has epochs 1 to 3.");
}

TableOptions withMetrics(std::initializer_list<kj::StringPtr> names) {
  TableOptions options;
  options.metrics = KJ_MAP(name, kj::arrayPtr(names.begin(), names.size())) {
    return kj::str(name);
  };
  return options;
}

TEST_CASE("readEpochLogTable: each requested metric has two columns, all of training first") {
  auto log =
      "Epoch[0] Train-accuracy=0.5\nEpoch[0] Train-ce=1.5\nEpoch[0] Time cost=2\n"
      "Epoch[0] Validation-accuracy=0.75\nEpoch[0] Validation-ce=1e32\n"_kj;
  CHECK(markdown(log, withMetrics({"accuracy", "ce"})) ==
        "| epoch | train-accuracy | train-ce | valid-accuracy | valid-ce | time |\n"
        "| --- | --- | --- | --- | --- | --- |\n"
        "|  1 | 0.500000 | 1.500000 | 0.750000 | 1e32 | 2.0 |\n");
}

TEST_CASE("readEpochLogTable: the first top-k accuracy of validations has a separate column") {
  auto log =
      "Epoch[0] Train-top_k_accuracy_3=0.1\nEpoch[0] Validation-accuracy=0.5\n"
      "Epoch[0] Validation-top_k_accuracy_5=0.75\nEpoch[0] Validation-top_k_accuracy_10=0.9\n"
      "Epoch[1] Validation-top_k_accuracy_5x=0.8\nEpoch[1] Validation-accuracy=0.6\n"_kj;
  CHECK(markdown(log) ==
        "| epoch | train-accuracy | valid-accuracy | valid-top-5 | time |\n"
        "| --- | --- | --- | --- | --- |\n"
        "|  1 |  | 0.500000 | 0.750000 |  |\n"
        "|  2 |  | 0.600000 |  |  |\n");
  // If the user names metrics, only these have columns.
  CHECK(markdown(log, withMetrics({"accuracy"}))
            .startsWith("| epoch | train-accuracy | valid-accuracy | time |\n"));
  CHECK(markdown(log, withMetrics({"top_k_accuracy_10"}))
            .startsWith("| epoch | train-top_k_accuracy_10 | valid-top_k_accuracy_10 | time |\n"));
}

TEST_CASE("readEpochLogTable: upper and lower case of a metric are the same") {
  CHECK(rows("Epoch[0] Train-Accuracy=0.5\nEpoch[0] Validation-Accuracy=0.75\n") ==
        "|  1 | 0.500000 | 0.750000 |  |\n");
  CHECK(markdown("Epoch[0] Train-ce=0.5\n", withMetrics({"CE"})) ==
        "| epoch | train-CE | valid-CE | time |\n| --- | --- | --- | --- |\n"
        "|  1 | 0.500000 |  |  |\n");
}

TEST_CASE("readEpochLogTable: a node's epoch that goes back begins a second run for all nodes") {
  auto log =
      "Node[0] Epoch[0] Train-accuracy=0.1\n"
      "Node[1] Epoch[0] Train-accuracy=0.3\n"
      "Node[1] Epoch[1] Train-accuracy=0.4\n"
      "Node[0] Epoch[1] Train-accuracy=0.6\n"
      "Node[0] Epoch[0] Train-accuracy=0.7\n"
      "Node[1] Epoch[0] Train-accuracy=0.9\n"_kj;
  CHECK(complaint(log) ==
        "x.log holds 2 runs: line 4 is Node[0] Epoch[1], and line 5 is Node[0] Epoch[0] again. "
        "Choose one with --run 1 to --run 2.");
  CHECK(rows(log, onlyRun(1)) == "|  1 | 0.200000 |  |  |\n|  2 | 0.500000 |  |  |\n");
  CHECK(rows(log, onlyRun(2)) == "|  1 | 0.800000 |  |  |\n");
  CHECK(complaint(log, onlyRun(3)) == "x.log holds 2 runs: there is no run 3. Runs count from 1.");
  CHECK(complaint(log, onlyRun(0)) == "x.log holds 2 runs: there is no run 0. Runs count from 1.");
}

TEST_CASE(
    "readEpochLogTable: a repeated figure of a node begins a second run, however short the runs "
    "are") {
  auto log =
      "Node[0] Epoch[0] Train-accuracy=0.1\n"
      "Node[0] Epoch[0] Train-top-k=0.3\n"
      "Node[1] Epoch[0] Train-accuracy=0.3\n"
      "Node[0] Epoch[0] Validation-accuracy=0.4\n"
      "Node[0] Epoch[0] Train-accuracy=0.5\n"
      "Node[0] Epoch[0] Validation-accuracy=0.6\n"
      "Node[1] Epoch[0] Train-accuracy=0.7\n"_kj;
  CHECK(complaint(log) ==
        "x.log holds 2 runs: line 1 is Node[0] Epoch[0], and line 5 is Node[0] Epoch[0] again. "
        "Choose one with --run 1 to --run 2.");
  CHECK(rows(log, onlyRun(1)) == "|  1 | 0.200000 | 0.400000 |  |\n");
  CHECK(rows(log, onlyRun(2)) == "|  1 | 0.600000 | 0.600000 |  |\n");
}

TEST_CASE("readEpochLogTable: a node far behind the others does not begin a second run") {
  CHECK(rows("Node[0] Epoch[0] Time cost=1\nNode[0] Epoch[5] Time cost=1\nNode[1] Epoch[0] Time "
             "cost=3\n") == "|  1 |  |  | 2.0 |\n|  6 |  |  | 1.0 |\n");
}

TEST_CASE("readEpochLogTable: without nodes, epoch 0 begins a worker after 1, and a run after 2") {
  CHECK(rows("Epoch[0] Time cost=1\nEpoch[1] Time cost=2\nEpoch[0] Time cost=3\n") ==
        "|  1 |  |  | 2.0 |\n|  2 |  |  | 2.0 |\n");
  auto log =
      "Epoch[0] Time cost=1\nEpoch[2] Time cost=2\nother\nEpoch[0] Time cost=3\n"
      "Epoch[1] Time cost=4\nEpoch[0] Time cost=5\n"_kj;
  CHECK(complaint(log) ==
        "x.log holds 2 runs: line 2 is Epoch[2], and line 4 is Epoch[0] again. Choose one with "
        "--run 1 to --run 2.");
  CHECK(rows(log, onlyRun(2)) == "|  1 |  |  | 4.0 |\n|  2 |  |  | 4.0 |\n");
}

TEST_CASE(
    "readEpochLogTable: refuses a log without the requested metric, and names those that it has") {
  auto log = "Epoch[0] Train-top_k=0.5\nEpoch[0] Validation-ce=1\nEpoch[1] Train-top_k=0.6\n"_kj;
  CHECK(complaint(log) ==
        "x.log has no metric accuracy. It has top_k, ce: choose with --metric-names top_k,ce.");
  CHECK(complaint(log, withMetrics({"ce", "F1"})) ==
        "x.log has no metric F1. It has top_k, ce: choose with --metric-names top_k,ce.");
  CHECK(complaint(kj::str(log, "Epoch[1] Validation-accuracy=0.5\n")) == "");
  // A log with only times has a table, unless the user asks for a metric.
  CHECK(complaint("Epoch[0] Time cost=1\n") == "");
  CHECK(complaint("Epoch[0] Time cost=1\n", withMetrics({"accuracy"})) ==
        "x.log has no metric accuracy: its epoch lines have only times.");
}

TEST_CASE("readEpochLogTable: speed lines make neither rows nor runs") {
  CHECK(rows("Node[0] Epoch[3] Batch [50]\tSpeed: 9.00 samples/sec\tTrain-accuracy=0.5\n"
             "Node[0] Epoch[0] Time cost=1\n") == "|  1 |  |  | 1.0 |\n");
}

TEST_CASE("readEpochLogTable: refuses a log without epoch lines") {
  CHECK(complaint("").startsWith("no epoch lines found in x.log: "));
  CHECK(complaint("Epoch[0] Batch [5]\tSpeed: 9.00 samples/sec\n")
            .startsWith("no epoch lines found"));
}

TEST_CASE("readEpochLogTable: makes a table from the lines that the program writes") {
  auto log = kj::str(runner::logPrefix(kj::UNIX_EPOCH, 0), runner::trainLine(0, "accuracy", 0.5),
      '\n', runner::logPrefix(kj::UNIX_EPOCH, 0), runner::timeLine(0, 12.34), '\n',
      runner::logPrefix(kj::UNIX_EPOCH, 0), runner::validationLine(0, "accuracy", 0.75), '\n');
  CHECK(rows(log) == "|  1 | 0.500000 | 0.750000 | 12.3 |\n");
}

TEST_CASE("formatTable: writes columns with tabs between them, and CSV") {
  auto table = readEpochLogTable(
      "Epoch[0] Train-accuracy=0.5\nEpoch[1] Validation-accuracy=1\nEpoch[1] Time cost=2\n"_kj
          .asArray(),
      "x.log");
  CHECK(formatTable(textOf(table), runner::TableFormat::NONE) ==
        "epoch\ttrain-accuracy\tvalid-accuracy\ttime\n 1\t0.500000\t\t\n 2\t\t1.000000\t2.0\n");
  CHECK(formatTable(textOf(table), runner::TableFormat::CSV) ==
        "epoch,train-accuracy,valid-accuracy,time\n1,0.500000,,\n2,,1.000000,2.0\n");
}

TEST_CASE("epochTimes: the mean epoch time is that of all epochs after the first") {
  auto log =
      "Node[0] Epoch[0] Time cost=50\nNode[0] Epoch[1] Time cost=10\n"
      "Node[1] Epoch[1] Time cost=14\nNode[0] Epoch[2] Time cost=11.5\n"_kj;
  auto times = [&](kj::StringPtr text, const TableOptions& options = {}) {
    return epochTimes(readEpochLogTable(text.asArray(), "x.log", options));
  };
  CHECK(times(log) == "Mean epoch time after the first epoch: 11.75 s");
  TableOptions last;
  last.every = 3;
  CHECK(times(log, last) == "Mean epoch time after the first epoch: 11.75 s");
  CHECK(times("Epoch[0] Time cost=50\nEpoch[1] Train-accuracy=1\n") ==
        "Mean epoch time after the first epoch: unknown");
}

TEST_CASE("pageTable: has no times, no hyphens and no padding") {
  kj::StringPtr log = "Epoch[0] Train-accuracy=0.5\nEpoch[0] Time cost=2\n";
  auto table = pageTable(textOf(readEpochLogTable(log.asArray(), "x.log")), "x.log");
  CHECK(formatTable(table, runner::TableFormat::MARKDOWN) ==
        "| epoch | train accuracy | valid accuracy |\n| --- | --- | --- |\n| 1 | 0.500000 |  |\n");
}

}  // namespace
}  // namespace tools
