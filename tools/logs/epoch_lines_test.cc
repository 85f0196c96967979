#include "tools/logs/epoch_lines.h"

#include <doctest/doctest.h>
#include <kj/vector.h>

#include <cmath>

#include "runner/logs/log_lines.h"
#include "runner/text/numbers.h"

namespace tools {
namespace {

kj::Maybe<LogLine> read(kj::StringPtr line) {
  return readLogLine(line.asArray(), 1);
}

// Returns `kind epoch rank metric value`, to compare in one check. A missing part is `-`.
kj::String told(kj::StringPtr line) {
  KJ_IF_MAYBE(l, read(line)) {
    const char* kinds[] = {"train", "time", "validation", "speed"};
    auto rank = kj::str("-");
    KJ_IF_MAYBE(r, l->rank) {
      rank = kj::str(*r);
    }
    return kj::str(kinds[static_cast<int>(l->kind)], ' ', l->epoch, ' ', rank, ' ', l->metric, ' ',
        runner::fixedPoint(l->value, 6));
  }
  return kj::str("-");
}

bool same(kj::StringPtr a, kj::StringPtr b) {
  INFO(a.cStr(), " against ", b.cStr());
  CHECK(a == b);
  return a == b;
}

TEST_CASE("readLogLine: reads what the program writes") {
  auto prefix = runner::logPrefix(kj::UNIX_EPOCH, 3);
  same(told(kj::str(prefix, runner::trainLine(4, "accuracy", 0.449129))),
      "train 4 3 accuracy 0.449129");
  same(told(kj::str(prefix, runner::timeLine(4, 10.623))), "time 4 3  10.623000");
  same(told(kj::str(prefix, runner::validationLine(4, "accuracy", std::nan("")))),
      "validation 4 3 accuracy nan");
  same(told(kj::str(prefix, runner::speedLine(4, 50, 820.11, "accuracy", 0.3))),
      "speed 4 3  820.110000");
}

TEST_CASE("readLogLine: recognises the lines of every period, after any prefix") {
  same(told("INFO:root:Iteration[0] Train-accuracy=0.5"), "train 0 - accuracy 0.500000");
  same(told("Iteration[3] Time cost=104.337"), "time 3 -  104.337000");
  same(told("2016-01-22 14:22:03,897 Node[12] Epoch[4] Validation-top_k_accuracy_5=0.9"),
      "validation 4 12 top_k_accuracy_5 0.900000");
  same(told("INFO:root:Iter[0] Batch [5]\tSpeed: 175.98 samples/sec"), "speed 0 -  175.980000");
  same(told("Epoch[1] Batch [50-100]\tSpeed: inf samples/sec\taccuracy=0.4"), "speed 1 -  inf");
  same(told("INFO [main] (x[7]) Epoch[2] Time cost=1\r"), "time 2 -  1.000000");
}

TEST_CASE("readLogLine: recognises lines in notebooks, after a code fence, and indented") {
  kj::StringPtr notebook =
      "     \"INFO:root:Epoch[4] Train-accuracy=0.5\\n\",\n"
      "     \"INFO:root:Epoch[4] Batch [50]\\tSpeed: 9.00 samples/sec\\taccuracy=0.4\\n\",\n"
      "     \"INFO:root:Epoch[4] Validation-accuracy=0.75\"\n";
  auto lines = readLogLines(notebook.asArray());
  REQUIRE(lines.size() == 3);
  CHECK(lines[0].value == 0.5);
  CHECK(lines[1].value == 9);
  CHECK(lines[2].value == 0.75);
  CHECK(lines[2].number == 3);
  same(told("```Epoch[4] Train-accuracy=0.5```"), "train 4 - accuracy 0.500000");
  same(told("`Epoch[4] Time cost=1.5`"), "time 4 -  1.500000");
  same(told("    Epoch[4] Batch [5]   Speed: 9 samples/sec"), "speed 4 -  9.000000");
}

TEST_CASE("isCalled: upper and lower case count as the same") {
  CHECK(isCalled("Accuracy"_kj.asArray(), "accuracy"));
  CHECK(isCalled("top_k_Accuracy_5"_kj.asArray(), "TOP_K_accuracy_5"));
  CHECK_FALSE(isCalled("accuracy"_kj.asArray(), "accurac"));
  CHECK_FALSE(isCalled("accuracy"_kj.asArray(), "accurace"));
}

TEST_CASE("readLogLine: accepts negative numbers, exponents, nan and infinity as values") {
  same(told("Epoch[0] Train-loss=-0.25"), "train 0 - loss -0.250000");
  same(told("Epoch[0] Train-loss=1e-05"), "train 0 - loss 0.000010");
  same(told("Epoch[0] Train-loss=2.5E+02"), "train 0 - loss 250.000000");
  same(told("Epoch[0] Train-loss=nan"), "train 0 - loss nan");
  same(told("Epoch[0] Train-loss=-nan"), "train 0 - loss nan");
  same(told("Epoch[0] Train-loss=-inf"), "train 0 - loss -inf");
}

TEST_CASE("readLogLine: recognises neither other lines nor broken ones") {
  for (auto line:
      {"", "[", "Epoch[", "Epoch[]", "Epoch[1", "Epoch[1] ", "Epoch[x] Train-accuracy=1",
          "Epoch[0]Train-accuracy=1", "Epoch[0] Train-accuracy=", "Epoch[0] Train-accuracy",
          "Epoch[0] Train-=0.5", "Epoch[0] Train-accuracy=0.5x", "Epoch[0] Time cost=0.5.6",
          "Epoch[0] Train-accuracy=0.345Epoch[0] Time cost", "Epoch[1234567890] Train-accuracy=1",
          "Epoch[-1] Train-accuracy=1", "Epoch[0] Resetting Data Iterator",
          "Iter[0] Batch[10] Train-accuracy=0.3", "Epoch[0] Batch [5]", "Update[5]: Change",
          "Accuracy = 0.8201", "Epoch[0] Batch [5-]\tSpeed: 1 samples/sec"}) {
    INFO(line);
    CHECK(told(line) == "-");
  }
}

TEST_CASE("readLogLine: a line that begins again after another figure has only the second one") {
  same(told("Node[1] Epoch[0] Train-foo=bad Epoch[0] Time cost=1"), "time 0 1  1.000000");
}

TEST_CASE("readLogLines: numbers a log's lines from 1, with any line ends") {
  kj::StringPtr log = "start\r\nEpoch[0] Train-accuracy=0.5\r\n\nEpoch[0] Time cost=1";
  auto lines = readLogLines(log.asArray());
  REQUIRE(lines.size() == 2);
  CHECK(lines[0].number == 2);
  CHECK(lines[1].number == 4);
  CHECK(readLogLines(nullptr).empty());
}

TEST_CASE("readLogLines: reads a huge line in one pass") {
  // 64 MB of brackets that could all begin a line. A quadratic search would take hours.
  constexpr size_t COPIES = 4 << 20;
  kj::StringPtr piece = "Epoch[0] Train-x";
  kj::Vector<char> log(COPIES * piece.size() + 64);
  for (size_t i = 0; i < COPIES; ++i) log.addAll(piece);
  log.addAll("\nEpoch[7] Time cost=2\n"_kj);
  auto lines = readLogLines(log);
  REQUIRE(lines.size() == 1);
  CHECK(lines[0].epoch == 7);
  CHECK(lines[0].number == 2);
}

}  // namespace
}  // namespace tools
