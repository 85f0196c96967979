#include "runner/system/machine.h"

#include <doctest/doctest.h>

namespace runner {
namespace {

TEST_CASE("coresOfQuota: a quota allows whole cores, at least one, and `max` sets no limit") {
  CHECK(coresOfQuota("400000 100000\n").orDefault(0) == 4);
  CHECK(coresOfQuota("150000 100000\n").orDefault(0) == 1);
  CHECK(coresOfQuota("5000 100000\n").orDefault(0) == 1);
  CHECK(coresOfQuota("max 100000\n") == nullptr);
  CHECK(coresOfQuota("") == nullptr);
  CHECK(coresOfQuota("400000") == nullptr);
}

TEST_CASE("machine: the machine that runs the test has at least one core, and memory") {
  auto machine = thisMachine();
  CHECK(machine.cores >= 1);
  CHECK(machine.memory_bytes > 0);
}

}  // namespace
}  // namespace runner
