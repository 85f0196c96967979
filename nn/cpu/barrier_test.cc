#include "nn/cpu/barrier.h"

#include <doctest/doctest.h>
#include <kj/thread.h>
#include <kj/vector.h>

namespace nn::cpu {
namespace {

// More lanes than machines have cores, so that some block.
constexpr uint LANES = 9;

TEST_CASE(
    "Barrier: no lane continues before all have arrived, and each sees the writes of the others") {
  constexpr uint ROUNDS = 2000;
  Barrier barrier(LANES);
  uint done[LANES] = {};
  uint missing[LANES] = {};
  {
    kj::Vector<kj::Own<kj::Thread>> threads;
    for (uint lane = 0; lane < LANES; ++lane) {
      threads.add(kj::heap<kj::Thread>([&, lane]() {
        for (uint round = 1; round <= ROUNDS; ++round) {
          done[lane] = round;
          barrier.meet();
          for (uint other: done) missing[lane] += other != round;
          barrier.meet();
        }
      }));
    }
  }
  for (uint lane = 0; lane < LANES; ++lane) {
    CHECK(done[lane] == ROUNDS);
    CHECK(missing[lane] == 0);
  }
}

TEST_CASE("Barrier: one lane alone does not wait") {
  Barrier barrier(1);
  for (uint round = 0; round < 3; ++round) barrier.meet();
}

}  // namespace
}  // namespace nn::cpu
