#include "nn/cpu/instruction_set.h"

#include <doctest/doctest.h>
#include <kj/debug.h>

namespace nn {
namespace {

// One test, because a process fixes its level once.
TEST_CASE("a process can be limited to AVX2 until it has computed") {
  auto offered = offeredInstructionSet();
  useInstructionSet("avx2");
  CHECK(instructionSet() == "avx2");
  // What the processor offers stays the same.
  CHECK(offeredInstructionSet() == offered);
  useInstructionSet("avx2");
  auto failure = kj::runCatchingExceptions([]() { useInstructionSet("avx512"); });
  CHECK(KJ_ASSERT_NONNULL(failure).getDescription() ==
        "this process computes with avx2, and cannot compute with avx512");
}

TEST_CASE("canCompute, lowerLevel: AVX-512 includes emulated AMX, and AVX2 is the lowest level") {
  constexpr kj::StringPtr LEVELS[] = {"avx2"_kj, "avx512"_kj, "avx512_amx"_kj};
  for (auto level: LEVELS) {
    CHECK(canCompute("avx512_amx", level));
    // The host emulates AMX.
    CHECK(canCompute("avx512", level));
    CHECK(canCompute("avx2", level) == (level == "avx2"));
    CHECK(lowerLevel(level, "avx512_amx") == level);
    CHECK(lowerLevel("avx2", level) == "avx2");
  }
  CHECK(lowerLevel("avx512_amx", "avx512") == "avx512");
}

}  // namespace
}  // namespace nn
