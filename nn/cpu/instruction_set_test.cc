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
  // The processor still has the same.
  CHECK(offeredInstructionSet() == offered);
  useInstructionSet("avx2");
  auto failure = kj::runCatchingExceptions([]() { useInstructionSet("avx512"); });
  CHECK(KJ_ASSERT_NONNULL(failure).getDescription() ==
        "this process computes with avx2, and cannot compute with avx512");
}

}  // namespace
}  // namespace nn
