// cluster.instruction_set: hosts with different processors, which DNNL_MAX_CPU_ISA imitates here.
#include <doctest/doctest.h>
#include <kj/debug.h>
#include <signal.h>

#include "tests/faults/failure.h"
#include "tests/faults/roles_by_hand.h"
#include "tests/skip.h"
#include "tests/text.h"

namespace tests {
namespace {

constexpr kj::StringPtr SHORT = "tests/faults/short.toml"_kj;
constexpr kj::StringPtr ONLY_AVX2 = "DNNL_MAX_CPU_ISA=AVX2"_kj;

// What `runner devices` says.
kj::String levelHere() {
  auto line = kj::mv(linesOf(Command({RUNNER, "devices"}).wait().output)[0]);
  constexpr auto BEFORE = "cpu: "_kj;
  REQUIRE(line.startsWith(BEFORE));
  return kj::str(line.slice(BEFORE.size()));
}

bool hasAvx512() {
  return levelHere() != "avx2";
}

// Starts worker 1 on a host that has only AVX2.
kj::Own<Command> startLimited(kj::StringPtr address, Words settings = nullptr) {
  kj::Vector<kj::StringPtr> words;
  words.addAll(std::initializer_list<kj::StringPtr>{
      RUNNER, "role", SHORT, "--role", "worker", "--index", "1", "--coordinator", address});
  for (auto& setting: settings) {
    words.add("--set");
    words.add(setting);
  }
  auto cache = cacheSetting();
  kj::StringPtr environment[] = {cache, ONLY_AVX2};
  return kj::heap<Command>(words.asPtr(), Command::Surroundings{.environment = environment});
}

// The weights of `runner run` on such a host.
kj::String weightsWithAvx2() {
  auto cache = cacheSetting();
  auto runs = newFolder();
  kj::StringPtr environment[] = {cache, ONLY_AVX2};
  auto ended = Command({RUNNER, "run", SHORT, "--runs", runs}, {.environment = environment}).wait();
  CHECK(ended.exitCode == 0);
  CHECK(contains(
      readFile(kj::str(runs, "/short/1/experiment.toml")), "\ninstruction_set = \"avx2\"\n"));
  // The last line is `weights sha256=…  FOLDER`.
  auto at = KJ_REQUIRE_NONNULL(ended.output.findLast('='));
  return kj::heapString(ended.output.slice(at + 1, at + 65));
}

TEST_CASE("runner run writes its instruction set into experiment.toml and into its first event") {
  auto run = train(SHORT);
  // AMX multiplies no float32s.
  auto word = kj::StringPtr(hasAvx512() ? "avx512" : "avx2");
  CHECK(contains(readFile(kj::str(run.folder, "/experiment.toml")),
      kj::str("\ninstruction_set = \"", word, "\"\n")));
  auto first = kj::mv(linesOf(readFile(kj::str(run.folder, "/events.jsonl")))[0]);
  CHECK(contains(first, kj::str("\"instruction_set\":\"", word, "\"")));
}

TEST_CASE(
    "with AMX, or its emulation, any number of servers and one or two threads train the same "
    "bits") {
  if (!hasAvx512()) SKIP_CASE("this processor has no AVX-512");
  constexpr kj::StringPtr AMX = "cluster.instruction_set=avx512_amx"_kj;
  constexpr kj::StringPtr BF16 = "train.precision=bf16"_kj, BATCH = "data.batch_size=70"_kj;
  auto weights = [&](std::initializer_list<kj::StringPtr> settings) {
    return train(SHORT, kj::arrayPtr(settings.begin(), settings.size())).weightsSha256;
  };
  if (Command({RUNNER, "check", SHORT, "--set", BF16}).wait().exitCode != 0) {
    SKIP_CASE("this processor has no AVX512_BF16");
  }
  auto expected = weights({AMX, BF16, BATCH});
  CHECK(weights({AMX, BF16, BATCH, "cluster.servers=1"}) == expected);
  CHECK(weights({AMX, BF16, BATCH, "cluster.threads_per_worker=2"}) == expected);
  CHECK(weights({"cluster.instruction_set=avx512", BF16, BATCH}) != expected);
}

TEST_CASE("a job on hosts with AVX-512 and hosts with AVX2 trains the bits of AVX2") {
  if (!hasAvx512()) SKIP_CASE("this processor has no AVX-512");
  auto expected = weightsWithAvx2();
  constexpr kj::StringPtr NAMED[] = {"cluster.instruction_set=avx2"_kj};
  CHECK(train(SHORT, NAMED).weightsSha256 == expected);
  CHECK(train(SHORT).weightsSha256 != expected);

  auto folder = kj::str(newFolder(), "/run");
  auto coordinator = startCoordinator(SHORT, folder);
  auto address = addressOf(*coordinator);
  kj::Vector<kj::Own<Command>> roles;
  for (uint i = 0; i < 2; i++) roles.add(startRole(SHORT, "server", i, address));
  roles.add(startRole(SHORT, "worker", 0, address));
  roles.add(startLimited(address));
  auto ended = coordinator->wait();
  INFO(ended.errors);
  CHECK(ended.exitCode == 0);
  CHECK(contains(ended.output, expected));
  for (auto& role: roles) CHECK(role->wait(FAILS_WITHIN_S).exitCode == 0);
  CHECK(contains(readFile(kj::str(folder, "/experiment.toml")), "\ninstruction_set = \"avx2\"\n"));
  CHECK(contains(
      readFile(kj::str(folder, "/events.jsonl")), "\"agreed\":{\"instruction_set\":\"avx2\"}"));
}

TEST_CASE(
    "a worker on a host that lacks the named instruction set is refused and told what to do") {
  if (!hasAvx512()) SKIP_CASE("this processor has no AVX-512");
  constexpr kj::StringPtr NAMED[] = {"cluster.instruction_set=avx512"_kj};
  auto cache = cacheSetting();
  kj::StringPtr environment[] = {cache};
  auto folder = newFolder();
  Command coordinator(
      {RUNNER, "role", SHORT, "--role", "coordinator", "--folder", folder, "--set", NAMED[0]},
      {.environment = environment});
  auto address = addressOf(coordinator);
  auto ended = startLimited(address, NAMED)->wait(FAILS_WITHIN_S);
  CHECK(ended.exitCode == 1);
  CHECK(contains(ended.errors,
      "worker 1 has only avx2, and the file has cluster.instruction_set = \"avx512\". Run this "
      "worker on "
      "another host, or choose \"avx2\" or \"auto\" for all roles"));
  coordinator.kill(SIGINT);
  CHECK(coordinator.wait().exitCode == 130);
}

}  // namespace
}  // namespace tests
