#include "runner/roles/instruction_set_choice.h"

#include <doctest/doctest.h>
#include <kj/debug.h>
#include <string.h>

#include "nn/cpu/instruction_set.h"
#include "runner/experiment/experiment.h"

namespace runner {
namespace {

struct Loop {
  kj::EventLoop loop;
  kj::WaitScope scope{loop};
};

TEST_CASE("InstructionSetChoice: auto is decided when all workers have joined") {
  for (auto first: {"avx2"_kj, "avx512"_kj, "avx512_amx"_kj}) {
    for (auto second: {"avx2"_kj, "avx512"_kj, "avx512_amx"_kj}) {
      Loop loop;
      InstructionSetChoice choice("auto", "avx512_amx", 2);
      auto known = choice.whenKnown();
      choice.offer("worker 1 on node2", first);
      CHECK(choice.level() == nullptr);
      CHECK_FALSE(known.poll(loop.scope));
      choice.offer("worker 0 on node1", second);
      known.wait(loop.scope);
      // Their names are in alphabetical order.
      CHECK(KJ_REQUIRE_NONNULL(choice.level()) == kj::min(first, second));
    }
  }
}

TEST_CASE(
    "InstructionSetChoice: a worker that joins later on a host without the level is refused") {
  Loop loop;
  InstructionSetChoice choice("auto", "avx512_amx", 1);
  choice.offer("worker 0 on node1", "avx512");
  choice.offer("worker 1 on node2", "avx512_amx");
  auto failure = kj::runCatchingExceptions([&]() { choice.offer("worker 1 on node3", "avx2"); });
  CHECK(KJ_REQUIRE_NONNULL(failure).getDescription() ==
        "worker 1 on node3 has only avx2, but the run has computed with avx512 so far. Run this "
        "worker on a host that can compute with avx512");
  CHECK(KJ_REQUIRE_NONNULL(choice.level()) == "avx512");
}

TEST_CASE("InstructionSetChoice: auto does not choose AMX if AMX changes nothing") {
  Loop loop;
  InstructionSetChoice choice("auto", "avx512", 1);
  choice.offer("worker 0 on node1", "avx512_amx");
  CHECK(KJ_REQUIRE_NONNULL(choice.level()) == "avx512");
}

TEST_CASE("a host without AMX takes part in a job with AMX, but one without AVX-512 does not") {
  Loop loop;
  InstructionSetChoice choice("avx512_amx", "avx512_amx", 2);
  choice.offer("worker 0 on node1", "avx512");
  auto failure = kj::runCatchingExceptions([&]() { choice.offer("worker 1 on node2", "avx2"); });
  CHECK(strstr(KJ_REQUIRE_NONNULL(failure).getDescription().cStr(), "has only avx2") != nullptr);
  CHECK(KJ_REQUIRE_NONNULL(choice.level()) == "avx512_amx");
}

TEST_CASE("InstructionSetChoice: auto is decided immediately if all workers run on this machine") {
  Loop loop;
  InstructionSetChoice choice("auto", "avx512_amx", 0);
  choice.whenKnown().wait(loop.scope);
  CHECK(KJ_REQUIRE_NONNULL(choice.level()) == nn::offeredInstructionSet());
}

TEST_CASE("a worker whose host lacks the named instruction set is refused and told what to do") {
  Loop loop;
  InstructionSetChoice choice("avx512", "avx512_amx", 2);
  choice.whenKnown().wait(loop.scope);
  choice.offer("worker 0 on node1", "avx512");
  auto failure = kj::runCatchingExceptions([&]() { choice.offer("worker 1 on node2", "avx2"); });
  CHECK(
      KJ_REQUIRE_NONNULL(failure).getDescription() ==
      "worker 1 on node2 has only avx2, and the file has cluster.instruction_set = "
      "\"avx512\". Run this worker on another host, or choose \"avx2\" or \"auto\" for all roles");
  InstructionSetChoice less("avx2", "avx512_amx", 2);
  less.offer("worker 0 on node1", "avx512");
  CHECK(KJ_REQUIRE_NONNULL(less.level()) == "avx2");
}

TEST_CASE("InstructionSetChoice: a resumed run keeps its level, and refuses a host without it") {
  for (auto setting: {"auto"_kj, "avx512"_kj}) {
    Loop loop;
    InstructionSetChoice choice(setting, "avx512_amx", 2, "avx512");
    choice.whenKnown().wait(loop.scope);
    CHECK(KJ_REQUIRE_NONNULL(choice.level()) == "avx512");
    choice.offer("worker 0 on node1", "avx512_amx");
    // No other level leads to the weights of an unbroken run, so the message names none.
    auto failure = kj::runCatchingExceptions([&]() { choice.offer("worker 1 on node2", "avx2"); });
    CHECK(KJ_REQUIRE_NONNULL(failure).getDescription() ==
          "worker 1 on node2 has only avx2, but the run has computed with avx512 so far. Run this "
          "worker on a host that can compute with avx512");
    CHECK(KJ_REQUIRE_NONNULL(choice.level()) == "avx512");
  }
}

TEST_CASE(
    "a run can be resumed with the level of its checkpoint or auto, but with no other level") {
  requireSameInstructionSet("avx512", "avx512", "runs/x/1");
  requireSameInstructionSet("auto", "avx512", "runs/x/1");
  requireSameInstructionSet("avx2", "", "runs/x/1");
  auto failure =
      kj::runCatchingExceptions([&]() { requireSameInstructionSet("avx2", "avx512", "runs/x/1"); });
  CHECK(KJ_REQUIRE_NONNULL(failure).getDescription() ==
        "the run in runs/x/1 has computed with avx512 so far, and cannot continue with "
        "cluster.instruction_set = \"avx2\", because the bits of the weights depend on it. Choose "
        "\"avx512\" or \"auto\", or begin a new run without --resume");
}

TEST_CASE("the resolved experiment names the level, which does not change its digest") {
  auto read = [](kj::StringPtr word) {
    kj::String setting = kj::str("cluster.instruction_set=", word);
    kj::StringPtr overrides[] = {setting};
    auto loaded = loadExperiment("configs/fashion_mnist_dist_sync.toml", overrides);
    REQUIRE(loaded.errors == "");
    return loaded;
  };
  auto automatic = read("auto"), named = read("avx2");
  CHECK(automatic.digest == named.digest);
  CHECK(automatic.resolved != named.resolved);
  CHECK(withInstructionSet(automatic.resolved, "avx2") == named.resolved);
  CHECK(withInstructionSet(named.resolved, "avx512") == named.resolved);
  CHECK(withInstructionSet(automatic.resolved, "auto") == automatic.resolved);
}

TEST_CASE("the resolved experiment says which precision \"auto\" is") {
  kj::StringPtr overrides[] = {"train.precision=auto"_kj};
  auto loaded = loadExperiment("configs/fashion_mnist_dist_sync.toml", overrides);
  REQUIRE(loaded.errors == "");
  auto told = [&](kj::StringPtr level, kj::StringPtr line) {
    auto text = withInstructionSet(loaded.resolved, level);
    // A second call changes nothing: the file of a resumed run already says it.
    CHECK(withInstructionSet(text, level) == text);
    return strstr(text.cStr(), line.cStr()) != nullptr;
  };
  CHECK(told("avx2", "\nprecision = \"auto\"  # fp32 with avx2\n"));
  CHECK(told("avx512", "\nprecision = \"auto\"  # fp32 with avx512\n"));
  CHECK(told("avx512_amx", "\nprecision = \"auto\"  # bf16 with avx512_amx\n"));
}

}  // namespace
}  // namespace runner
