// The logs of whole runs in each style: one stream, one file per role, and the table that parse_log
// makes of them.
#include <doctest/doctest.h>

#include <algorithm>

#include "runner/logs/log_styles.h"
#include "tests/cluster/whole_runs.h"
#include "tests/run.h"
#include "tests/text.h"

namespace tests {
namespace {

kj::String read(const Trained& run, kj::StringPtr name) {
  return readFile(kj::str(run.folder, "/", name));
}

kj::Vector<kj::String> linesOf(const Trained& run, kj::StringPtr name) {
  return tests::linesOf(read(run, name));
}

// Whether a line of the role's file is one in plain words, which the style does not have:
// `2016-01-22 14:22:03,897 worker 0: …`.
bool isPlain(kj::StringPtr line, kj::StringPtr role) {
  return line.size() > 24 && line.slice(24).startsWith(kj::str(role, ": "));
}

// Returns the lines that the style writes for the run's events.
kj::Vector<kj::String> linesOfEvents(const Trained& run, const runner::LogStyle& style) {
  kj::Vector<kj::String> lines;
  auto writer = style.writer();
  eachEvent(run, [&](runner::Event::Reader event) {
    for (auto& written: writer->lines(event)) lines.add(kj::mv(written));
  });
  return lines;
}

kj::String sorted(kj::Vector<kj::String> lines) {
  std::sort(lines.begin(), lines.end());
  return kj::strArray(lines, "\n");
}

uint countOf(kj::ArrayPtr<const kj::String> lines, kj::StringPtr part) {
  uint count = 0;
  for (auto& line: lines) {
    for (size_t i = 0; i + part.size() <= line.size(); i++) {
      if (line.slice(i).startsWith(part)) {
        count++;
        break;
      }
    }
  }
  return count;
}

Trained trainIn(kj::StringPtr style) {
  return train(MLP, {kj::str("log.style=", style), "log.every=20", "train.steps=50"});
}

TEST_CASE("in every style, log.txt follows from the events, and the roles' files have its lines") {
  for (auto& style: runner::LOG_STYLES) {
    INFO(style.name);
    auto run = trainIn(style.name);
    auto log = linesOf(run, "log.txt");
    CHECK(kj::strArray(log, "\n") == kj::strArray(linesOfEvents(run, style), "\n"));

    kj::Vector<kj::String> ofRoles;
    for (kj::StringPtr role: {"worker 0"_kj, "worker 1"_kj, "server 0"_kj, "server 1"_kj}) {
      auto file = kj::str(role.slice(0, 6), "-", role.slice(7), ".log");
      uint plain = 0;
      for (auto& line: linesOf(run, file)) {
        if (isPlain(line, role)) {
          plain++;
        } else {
          ofRoles.add(kj::mv(line));
        }
      }
      CHECK(plain >= 3);
      auto last = kj::str(linesOf(run, file).back().slice(24));
      CHECK(last == kj::str(role, ": the job is done, weights sha256=", run.weightsSha256));
    }
    CHECK(sorted(kj::mv(ofRoles)) == sorted(kj::mv(log)));

    Command parse({"tools/parse_log", kj::str(run.folder, "/log.txt")});
    CHECK(read(run, "table.md").startsWith(kj::str(parse.wait().output, "\nStore:\n")));
    Command one({"tools/parse_log", kj::str(run.folder, "/worker-1.log")});
    CHECK(one.wait().exitCode == 0);
  }
}

TEST_CASE("parse_log makes the table of a run with log.top_k, too") {
  auto run = train(MLP, {"log.top_k=3", "train.steps=50"});
  auto log = read(run, "log.txt");
  CHECK(contains(log, " Node[1] Epoch[0] Validation-top_k_accuracy_3=0."));
  auto table = read(run, "table.md");
  CHECK(table.startsWith("| epoch | train-accuracy | valid-accuracy | valid-top-3 | time |\n"));
  Command parse({"tools/parse_log", kj::str(run.folder, "/log.txt")});
  CHECK(table.startsWith(kj::str(parse.wait().output, "\nStore:\n")));
  CHECK(contains(read(run, "experiment.toml"), "\ntop_k = 3\n"));
  CHECK_FALSE(contains(read(trainIn("mxnet"), "experiment.toml"), "top_k"));
}

TEST_CASE("tf_replica has one line per step of each worker, between its beginning and its end") {
  auto run = train(MLP, {"log.style=tf_replica", "log.every=1", "train.steps=10"});
  auto lines = linesOf(run, "worker-1.log");
  CHECK(countOf(lines, ": Worker 1: training step ") == 10);
  CHECK(countOf(lines, "Worker 0") == 0);
  CHECK(countOf(lines, "After 10 training step(s), validation cross entropy = ") == 1);
  CHECK(countOf(linesOf(run, "log.txt"), ": (VariableV2): /job:ps/replica:0/task:") >= 6);
  CHECK(countOf(linesOf(run, "server-1.log"), " bytes of fc1_weight") == 1);
}

TEST_CASE(
    "with rounds of two gradients of any worker, one worker makes an update every two steps") {
  auto run =
      train(MLP, {"log.style=tf_replica", "log.every=1", "train.steps=10", "cluster.workers=1",
                     "kvstore.aggregate=2", "kvstore.aggregate_from=any"});
  auto lines = linesOf(run, "worker-0.log");
  CHECK(countOf(lines, ": Worker 0: training step ") == 20);
  CHECK(countOf(lines, "After 10 training step(s), validation cross entropy = ") == 1);
  // The values of the round in progress are those of the last one.
  CHECK(countOf(lines, "training step 20 done (global step: 10)") +
            countOf(lines, "training step 20 done (global step: 9)") ==
        1);
}

TEST_CASE("schlag ends each epoch with a line, and the run with the accuracy on test images") {
  auto run = train(MLP, {"log.style=schlag", "train.epochs=2", "train.steps=350"});
  // 300 steps per epoch, and a line every 100.
  auto lines = linesOf(run, "worker-0.log");
  CHECK(countOf(lines, "Batch: 300 of 300,") == 1);
  CHECK(countOf(lines, "Epoch:  2,  Batch:  50 of  50,") == 1);
  CHECK(countOf(lines, "Step: ") == 4);
  CHECK(countOf(lines, "Test-Accuracy: 0.") == 1);
}

TEST_CASE("stdout has all lines of log.txt if each worker has only a few about its steps") {
  Run run(MLP, {"log.style=tf_replica", "log.every=1", "train.steps=20"});
  auto ended = run.command.wait();
  REQUIRE(ended.exitCode == 0);
  CHECK(ended.output.startsWith(run.read("log.txt")));
  CHECK(!contains(ended.output, "more line"));
}

TEST_CASE(
    "of many lines about steps, stdout has the first, the last and some, and says where all are") {
  Run run(MLP, {"log.style=tf_replica", "log.every=1", "train.steps=210"});
  auto ended = run.command.wait();
  REQUIRE(ended.exitCode == 0);
  auto marked = [](kj::StringPtr text, kj::StringPtr part) {
    uint count = 0;
    for (auto at = strstr(text.cStr(), part.cStr()); at != nullptr;
         at = strstr(at + part.size(), part.cStr())) {
      count++;
    }
    return count;
  };
  // Besides the first and the last, these are the 19 steps 11, 22, … 209.
  CHECK(marked(run.read("log.txt"), ": Worker 0: training step ") == 210);
  CHECK(marked(ended.output, ": Worker 0: training step ") == 21);
  CHECK(contains(ended.output, ": Worker 1: training step 1 done"));
  CHECK(contains(ended.output, ": Worker 1: training step 11 done"));
  CHECK(contains(ended.output, ": Worker 1: training step 210 done"));
  CHECK(contains(
      ended.output, kj::str("\n378 more lines on single steps: see ", run.folder, "/log.txt\n")));
  CHECK(contains(ended.output, "\nTraining ends @ "));

  // The table has 420 rows for steps and two for ends.
  kj::StringPtr table = strstr(ended.output.cStr(), "more lines on single steps");
  CHECK(contains(table, "\n22 of 422 rows; table.md has all.\n"));
  uint rows = 0;
  auto end = strstr(table.cStr(), "\nStore:\n");
  REQUIRE(end != nullptr);
  for (char c: kj::arrayPtr(table.cStr(), end)) rows += c == '\n';
  // The end of that line, title, dashes, 22 rows, an empty line and the one below the table.
  CHECK(rows == 27);
  CHECK(contains(run.read("table.md"), "\n| 100 |"));
  CHECK(contains(end, "\nweights sha256="));
}

}  // namespace
}  // namespace tests
