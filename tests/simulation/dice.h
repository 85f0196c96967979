// tests/simulation/dice.h: all random decisions of a simulated job, from one seed.
#pragma once

#include <kj/common.h>
#include <kj/time.h>

#include <random>

namespace simulation {

using kj::uint;

class Dice {
public:
  explicit Dice(uint64_t seed): engine(seed) {}

  // Returns a number from 0 to `end` - 1.
  uint64_t below(uint64_t end) { return engine() % end; }
  // Returns a number that is at least 0 and below 1.
  double fraction() { return double(engine() >> 11) / double(1ull << 53); }
  bool chance(double probability) { return fraction() < probability; }
  // Returns a time up to `longest`. Short ones are far more likely.
  kj::Duration time(kj::Duration longest) {
    double x = fraction();
    return int64_t(x * x * x * (longest / kj::NANOSECONDS)) * kj::NANOSECONDS;
  }

private:
  std::mt19937_64 engine;
};

}  // namespace simulation
