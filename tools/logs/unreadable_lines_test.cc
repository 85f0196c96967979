#include "tools/logs/unreadable_lines.h"

#include <doctest/doctest.h>

namespace tools {
namespace {

TEST_CASE("unreadableLinesIn: counts lines per epoch without a number, but no other lines") {
  kj::StringPtr log =
      "Epoch[0] Resetting Data Iterator\nEpoch[0] Train-accuracy=0.5\nEpoch[1] Train-accuracy=0,5\n"
      "Epoch[1] Train-accuracy=50%\nEpoch[1] Validation-accuracy=+0.6\nEpoch[1] Time cost=\n"
      "Epoch[1] Batch [5]\tSpeed: fast samples/sec\nEpoch[1] Train-data is better if a=b\n"
      "Epoch[1] Train-accuracy = 0.5\nEpoch[1] Train-top k accuracy=0,5\n"
      "Epoch[1] Train-foo=bad Epoch[1] Time cost=1\n";
  auto found = unreadableLinesIn(log.asArray());
  CHECK(found.count == 7);
  CHECK(found.first == 3);
  CHECK(unreadableLinesIn(nullptr).count == 0);
}

TEST_CASE("unreadableLinesIn: counts lines per step whose number goes on after its end") {
  auto countIn = [](kj::StringPtr line) { return unreadableLinesIn(line.asArray()).count; };
  // Lines of tf_aws begin in this way.
  auto after = [](kj::StringPtr words) {
    return kj::str("After 100 training steps (95 global steps), ", words);
  };
  CHECK(countIn(after("loss on training batch is 2,1, accuracy is 0.5")) == 1);
  CHECK(countIn(after("loss on training batch is 2.1, accuracy is 0,5. (0.02 sec/batch)")) == 1);
  CHECK(countIn(after("loss on training batch is 2.1, accuracy is 0.5. (0,02 sec/batch)")) == 1);
  CHECK(countIn(after("loss on training batch is 2.1, accuracy is 1. (0.02 sec/batch)")) == 0);
  CHECK(countIn(after("loss on training batch is 2.1,accuracy is 0.5. (0.02sec/batch)")) == 0);
  CHECK(countIn(after("loss on training batch is 2.1.accuracy0.79")) == 0);
  CHECK(countIn(after("loss on training batch is ")) == 0);
  CHECK(countIn(after("accuracy is unknown")) == 0);
  CHECK(countIn(after("loss on training batch is 2.1, accuracy is 50%")) == 1);
  CHECK(countIn("After 200 training step(s), validation cross entropy = 605,644") == 1);
  CHECK(countIn("After 200 training step(s), validation cross entropy = ") == 0);
  // The last line of a log may be cut off.
  CHECK(countIn("Step: 5,  Epoch:  1,  Batch: 100 of 550,  Cost: 2.9") == 0);
  CHECK(countIn("Step: 5,  Epoch:  1,  Batch: 100 of 550,  Cost: 2.9,  Avg") == 0);
  CHECK(countIn("Step: 5,  Epoch:  1,  Batch: 100 of 550,  Cost: 2.9,  AvgTime: 3.11m") == 0);
  CHECK(countIn("Step: 5,  Epoch:  1,  Batch: 100 of 550,  Cost: 2,9,  AvgTime: 3.11ms") == 1);
  CHECK(countIn("Step: 5,  Epoch:  1,  Batch: 100 of 550,  Cost: 2.9,  AvgTime: 3,11ms") == 1);
  CHECK(countIn("Test-Accuracy: 0,42") == 1);
  CHECK(countIn("Test-Accuracy: see below") == 0);
  CHECK(countIn("Final Cost: 1.2x") == 1);
}

}  // namespace
}  // namespace tools
