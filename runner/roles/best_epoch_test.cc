#include "runner/roles/best_epoch.h"

#include <doctest/doctest.h>

namespace runner {
namespace {

nn::BatchResult validated(uint64_t correct, uint64_t images) {
  return {.lossSum = 1, .correct = correct, .images = images};
}

TEST_CASE("BestEpoch: of equally good epochs, the first one is the best") {
  BestEpoch best;
  CHECK(best.take(1, validated(0, 10)));
  CHECK(best.take(2, validated(7, 10)));
  CHECK_FALSE(best.take(3, validated(7, 10)));
  CHECK_FALSE(best.take(4, validated(6, 10)));
  CHECK(best.epoch == 2);
  CHECK(best.accuracy == 0.7);
  CHECK(best.take(5, validated(8, 10)));
  CHECK(best.epoch == 5);
}

TEST_CASE("BestEpoch: an epoch without validation is not the best one") {
  BestEpoch best;
  CHECK_FALSE(best.take(1, validated(0, 0)));
  CHECK(best.epoch == 0);
}

}  // namespace
}  // namespace runner
