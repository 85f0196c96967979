#include "tools/logs/log_table.h"

#include <doctest/doctest.h>
#include <kj/exception.h>

#include "tests/text.h"

namespace tools {
namespace {

constexpr kj::StringPtr EPOCH = "Node[0] Epoch[0] Train-accuracy=0.5\n"_kj;
constexpr kj::StringPtr AWS = "After 100 training steps (95 global steps)\n"_kj;
constexpr kj::StringPtr SCHLAG = "Test-Accuracy: 0.5\n"_kj;

kj::String csv(kj::StringPtr log, const TableOptions& options = {}) {
  return formatTable(
      textOf(readLogTable(log.asArray(), "x.log", options)), runner::TableFormat::CSV);
}

kj::String complaint(kj::StringPtr log, const TableOptions& options = {}) {
  KJ_IF_MAYBE(exception, kj::runCatchingExceptions([&]() { csv(log, options); })) {
    return kj::str(exception->getDescription());
  }
  return nullptr;
}

TEST_CASE("readLogTable: the lines in a log decide which table it has") {
  CHECK(csv(EPOCH) == "epoch,train-accuracy,valid-accuracy,time\n1,0.500000,,\n");
  CHECK(csv(AWS) == "step,global step,loss,accuracy,s/batch\n100,95,,,\n");
  CHECK(csv(SCHLAG) == "step,global step,loss,accuracy,s/batch\n,,,0.5,\n");
  CHECK(complaint("").startsWith("no epoch lines found in x.log"));
}

TEST_CASE("readLogTable: names UTF-16 as the cause") {
  CHECK_THROWS_WITH(readLogTable("\xff\xfe"
                                 "E\0p\0"_kj.asArray(),
                        "x.log", {}),
      doctest::Contains("x.log is UTF-16 text"));
}

TEST_CASE("readLogTable: refuses a log with lines of two styles") {
  CHECK(complaint(kj::str("hello\n", AWS, EPOCH)) ==
        "x.log contains lines of two styles: line 3 has style mxnet, and line 2 has style tf_aws. "
        "Put each style into a separate file.");
  CHECK(complaint(kj::str(AWS, SCHLAG)) ==
        "x.log contains lines of two styles: line 1 has style tf_aws, and line 2 has style schlag. "
        "Put each style into a separate file.");
}

kj::String aws(uint step, uint globalStep) {
  return kj::str("After ", step, " training steps (", globalStep, " global steps)\n");
}

TEST_CASE("readLogTable: refuses two runs by steps in one file, and names the lines that show it") {
  auto run = kj::str("session started\n", aws(100, 95), aws(200, 195), aws(300, 295));
  auto end = "total step: 305, global_step: 300\n"_kj;
  CHECK(complaint(kj::str(run, end, run, end)) ==
        "x.log contains several runs, or the logs of several workers: line 4 has global step 295, "
        "and line 7 is back at 95. Put each into a separate file.");
  CHECK(complaint(kj::str(run, run)) != "");
  auto schlag = [](uint globalStep) {
    return kj::str("Step: ", globalStep, ",  Epoch:  1,  Batch: 100 of 550,  Cost: 1.0,  ",
        "AvgTime: 3.11ms\n");
  };
  CHECK(complaint(kj::str(schlag(101), schlag(551), SCHLAG, schlag(101))) != "");

  auto replica = [](uint worker, uint step, uint globalStep) {
    return kj::str("1.5: Worker ", worker, ": training step ", step,
        " done (global step: ", globalStep, ")\n");
  };
  CHECK(
      complaint(kj::str(replica(0, 1, 0), replica(1, 1, 1), replica(0, 2, 2), replica(1, 1, 0))) ==
      "x.log contains several runs, or the logs of several workers: line 2 has global step 1, and "
      "line 4 is back at 0. Put each into a separate file.");
  CHECK(complaint(kj::str(replica(0, 1, 0), replica(0, 1, 0))) != "");
  // These are not two runs: another worker begins after the first, or one begins again while the
  // job continues.
  CHECK(complaint(kj::str(replica(0, 1, 0), replica(0, 2, 1), replica(1, 1, 0))) == "");
  CHECK(complaint(kj::str(replica(0, 1, 0), replica(0, 2, 1), replica(0, 1, 4))) == "");
}

TEST_CASE("readLogTable: workers of one run may begin late, end early and lag a little") {
  CHECK(complaint(kj::str("session started\n", aws(100, 100), aws(200, 200), "session started\n",
            aws(100, 390), aws(300, 380), "total step: 305, global_step: 500\n", aws(200, 490),
            "total step: 205, global_step: 500\n")) == "");
  CHECK(complaint(kj::str(aws(5, 20), aws(1, 1), aws(5, 19))) == "");
}

TEST_CASE("readLogTable: refuses options for epochs or runs if the log has steps") {
  TableOptions options;
  options.run = 1;
  CHECK(complaint(AWS, options) ==
        "x.log has one line per step: --epochs, --run, --metric-names and --op max are for logs "
        "with lines per epoch. Choose steps with --every.");
  TableOptions every;
  every.every = 3;
  CHECK(complaint(AWS, every) == "x.log has no step that is a multiple of 3.");
  auto ended = kj::str(AWS, "total step: 100, global_step: 95\n");
  CHECK(complaint(ended, every) == "x.log has no step that is a multiple of 3.");
  every.every = 50;
  CHECK(complaint(ended, every) == "");
}

TEST_CASE("readLogTable: a log with only speed lines has a table with one row per worker") {
  kj::StringPtr log =
      "Node[0] Epoch[0] Batch [0-50]\tSpeed: 100.00 samples/sec\taccuracy=0.5\n"
      "Node[0] Epoch[0] Batch [50-100]\tSpeed: 200.00 samples/sec\taccuracy=0.75\n";
  CHECK(csv(log) == "worker,images/s,minimum,maximum,count\n0,150.00,100.00,200.00,2\n");
  TableOptions options;
  options.epochs = kj::heapArray<uint>({1});
  CHECK(complaint(log, options) ==
        "x.log has only speed lines: --every, --epochs, --run, --metric-names and --op max are for "
        "logs "
        "with lines per epoch or step.");
  // With a single line about an epoch, the table is one of epochs.
  CHECK(csv(kj::str(log, "Node[0] Epoch[0] Time cost=2\n"))
            .startsWith("epoch,train-accuracy,valid-accuracy,time\n"));
}

}  // namespace
}  // namespace tools
