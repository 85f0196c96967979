#include "tools/logs/step_lines.h"

#include <doctest/doctest.h>
#include <kj/vector.h>

#include "tests/text.h"

namespace tools {
namespace {

template <typename T>
kj::String orDash(const kj::Maybe<T>& maybe) {
  KJ_IF_MAYBE(value, maybe) {
    return kj::str(*value);
  }
  return kj::str("-");
}

// Returns the parts of a line, to compare in one check. A missing part is `-`.
kj::String told(kj::StringPtr text) {
  KJ_IF_MAYBE(line, readStepLine(text.asArray(), 1)) {
    const char* styles[] = {"replica", "aws", "schlag"};
    return kj::str(styles[static_cast<int>(line->style)], line->end ? " end" : "", " rank ",
        orDash(line->rank), " step ", orDash(line->step), " of ", orDash(line->globalStep),
        " loss ", orDash(line->loss), " accuracy ", orDash(line->accuracy), " time ",
        orDash(line->batch_s), " at ", orDash(line->moment_s));
  }
  return kj::str("-");
}

TEST_CASE("tf_replica: reads steps and the final cross entropy") {
  CHECK(told("1502345678.250000: Worker 3: training step 1 done (global step: 0)") ==
        "replica rank 3 step 1 of 0 loss - accuracy - time - at 1502345678.25");
  CHECK(told("[1,0]<stdout>: x Worker 3: training step 21 done (global step: 40)\r") ==
        "replica rank 3 step 21 of 40 loss - accuracy - time - at -");
  CHECK(told("After 200 training step(s), validation cross entropy = 1234.56") ==
        "replica end rank - step - of 200 loss 1234.56 accuracy - time - at -");
  CHECK(told("After 200 training step(s), validation cross entropy = 1.2e+06") ==
        "replica end rank - step - of 200 loss 1200000 accuracy - time - at -");
}

TEST_CASE("tf_aws: reads steps and the numbers at the end") {
  CHECK(told("After 100 training steps (95 global steps), loss on training batch is 2.30259, "
             "accuracy is 0.125. (0.021 sec/batch)") ==
        "aws rank - step 100 of 95 loss 2.30259 accuracy 0.125 time 0.021 at -");
  // A whole number as %g writes it, before the full stop of the sentence.
  CHECK(told("After 100 training steps (95 global steps), loss on training batch is nan, "
             "accuracy is 1. (12.5 sec/batch)") ==
        "aws rank - step 100 of 95 loss nan accuracy 1 time 12.5 at -");
  CHECK(told("total step: 2005, global_step: 2000") ==
        "aws end rank - step 2005 of 2000 loss - accuracy - time - at -");
}

TEST_CASE("tf_aws: reads the figures of lines that were edited by hand") {
  for (auto words: {"accurac 0.92", "accuracy0.92", "accuras 0.92", "accuracy is 0.92.",
           "accuracy is about: .92", "accura=0.92"}) {
    auto text = kj::str(
        "After 1900 training steps (1895 global steps), loss on training batch is "
        "0.27, ",
        words);
    INFO(text.cStr());
    CHECK(told(text) == "aws rank - step 1900 of 1895 loss 0.27 accuracy 0.92 time - at -");
    CHECK(told(kj::str(text, " (0.021 sec/batch)")) ==
          "aws rank - step 1900 of 1895 loss 0.27 accuracy 0.92 time 0.021 at -");
  }
  // If the accuracy is not a number, no figure after it takes its place.
  auto accuracy = [](kj::StringPtr words) {
    return told(kj::str("After 1900 training steps (1895 global steps), accura", words));
  };
  for (auto words: {"cy is nan. (0.100 sec/batch)", "cy: -nan (0.100 sec/batch)"}) {
    INFO(words);
    CHECK(accuracy(words) == "aws rank - step 1900 of 1895 loss - accuracy nan time 0.1 at -");
  }
  CHECK(accuracy("cy is inf. (0.100 sec/batch)") ==
        "aws rank - step 1900 of 1895 loss - accuracy inf time 0.1 at -");
  for (auto words: {"cy (0.100 sec/batch)", "cy is unknown (0.100 sec/batch)",
           "cy, for information: none (0.100 sec/batch)"}) {
    INFO(words);
    CHECK(accuracy(words) == "aws rank - step 1900 of 1895 loss - accuracy - time 0.1 at -");
  }
  CHECK(told("After 1900 training steps (1895 global steps)") ==
        "aws rank - step 1900 of 1895 loss - accuracy - time - at -");
}

TEST_CASE("schlag: reads steps and the figures at the end") {
  auto text = "Step: 1100,  Epoch:  2,  Batch:  50 of 550,  Cost: 2.9133,  AvgTime: 3.50ms"_kj;
  CHECK(told(text) == "schlag rank - step - of 1100 loss 2.9133 accuracy - time 0.0035 at -");
  KJ_IF_MAYBE(line, readStepLine(text.asArray(), 7)) {
    CHECK(line->epoch == 2);
    CHECK(line->batch == 50);
    CHECK(line->epochBatches == 550);
    CHECK(line->number == 7);
  }
  CHECK(told("Step: 1, Epoch: 1, Batch: 1 of 5, Cost: nan, AvgTime: 3ms") ==
        "schlag rank - step - of 1 loss nan accuracy - time 0.003 at -");
  CHECK(told("Test-Accuracy: 0.42") ==
        "schlag end rank - step - of - loss - accuracy 0.42 time - at -");
  CHECK(told("Final Cost: 1.2345") ==
        "schlag end rank - step - of - loss 1.2345 accuracy - time - at -");
}

TEST_CASE("readStepLine: recognises neither other lines nor broken ones") {
  for (auto line:
      {"", "training step", "training steps", "After training steps (5 global steps)",
          "After 5 training steps (x global steps)", "Worker 0: training step 1 done",
          "Worker 0: training step 1 done (global step: 0", "training step 1 done (global step: 0)",
          "After 200 training step(s), validation cross entropy = ",
          "Worker 0: training step 1234567890 done (global step: 0)", "total step: 5",
          "Step: 5,  Epoch:  1,  Batch: 100 of 550,  Cost: 2.9",
          "Step: 5  Epoch:  1,  Batch: 100 of 550,  Cost: 2.9,  AvgTime: 1ms", "Test-Accuracy: x",
          "Final Cost: 1.2x", "Training begins @ 1502345678.123456", "session started",
          "Training elapsed time: 12.222222 s", "Total Time: 1.00s", "done", "job name = worker",
          "hid_w: (VariableV2): /job:ps/replica:0/task:1/cpu:0",
          "2016-01-22 14:22:03,897 Node[0] Epoch[4] Train-accuracy=0.449129"}) {
    INFO(line);
    CHECK(told(line) == "-");
  }
}

TEST_CASE("readStepLine: reads a huge line in one pass") {
  // 60 MB that could begin a line everywhere. A quadratic search would take hours.
  for (kj::StringPtr piece: {"training step"_kj, "After 1 training steps (1 global steps)accura"_kj,
           "Step: 1,  Epoch: 1,  Batch:"_kj, "total step: 1"_kj}) {
    kj::Vector<char> log(64 << 20);
    while (log.size() < (60 << 20)) log.addAll(piece);
    log.addAll("\nTest-Accuracy: 0.5\n"_kj);
    auto lines = readStepLines(log);
    REQUIRE(lines.size() >= 1);
    CHECK(lines.back().number == 2);
  }
}

}  // namespace
}  // namespace tools
