// Processors that lack what an experiment takes: found before anything else is begun.
#include <doctest/doctest.h>

#include "tests/faults/failure.h"

namespace tests {
namespace {

TEST_CASE("a processor without bfloat16 ends a run before data is read and roles are started") {
  for (auto level: {"DNNL_MAX_CPU_ISA=AVX512_CORE"_kj, "DNNL_MAX_CPU_ISA=AVX2"_kj}) {
    INFO(level);
    auto folder = newFolder();
    auto cache = kj::str("RUNNER_CACHE=", folder, "/cache");
    auto runs = kj::str(folder, "/runs");
    kj::StringPtr environment[] = {level, cache};
    Command command({RUNNER, "run", ENDLESS, "--runs", runs, "--set", "train.precision=bf16"},
        {.environment = environment});
    auto ended = command.wait();
    checkFailed(
        ended, {"train.precision = \"bf16\"", "AVX512_BF16", "DNNL_MAX_CPU_ISA", "\"fp32\""});
    CHECK(Command({"ls", "-A", folder}).wait().output == "");
  }
}

}  // namespace
}  // namespace tests
