// Tests that `bench kvstore` checks, measures and prints what it should. Does not test speeds.
#include <capnp/compat/json.h>
#include <capnp/message.h>
#include <doctest/doctest.h>
#include <signal.h>

#include <utility>

#include "rpc/placement.h"
#include "tests/command.h"
#include "tests/skip.h"
#include "tests/text.h"
#include "tools/bench/kv_model.h"

namespace tools {
namespace {

tests::Ended bench(std::initializer_list<kj::StringPtr> words) {
  kj::Vector<kj::StringPtr> all;
  for (auto word: {"tools/bench/bench"_kj, "kvstore"_kj, "--rounds=1"_kj, "--seconds=0.001"_kj}) {
    all.add(word);
  }
  for (auto word: words) all.add(word);
  return tests::Command(all).wait();
}

using Object = capnp::List<capnp::JsonValue::Field>::Reader;

kj::Maybe<capnp::JsonValue::Reader> find(Object object, kj::StringPtr name) {
  for (auto field: object) {
    if (field.getName() == name) return field.getValue();
  }
  return nullptr;
}

double numberOf(Object object, kj::StringPtr name) {
  KJ_IF_MAYBE(value, find(object, name)) return value->getNumber();
  return -1;
}

KvCase smallCase(bool sgd) {
  return {.key_bytes = 8'000,
      .keys = 1,
      .workers = 2,
      .servers = 1,
      .slice_bytes = 1 << 20,
      .sgd = sgd};
}

TEST_CASE("bench kvstore: JSON has a row per store, limit and peer, with consistent figures") {
  auto ended = bench({"--bytes=64,40000", "--json"});
  INFO(ended.errors);
  REQUIRE(ended.exitCode == 0);
  capnp::MallocMessageBuilder message;
  auto root = message.initRoot<capnp::JsonValue>();
  capnp::JsonCodec().decodeRaw(ended.output, root);
  auto rows = KJ_ASSERT_NONNULL(find(root.asReader().getObject(), "rows")).getArray();
  constexpr kj::StringPtr NAMES[] = {"tcp store"_kj, "tcp raw"_kj, "tls store"_kj, "tcp raw"_kj,
      "unix store"_kj, "unix raw"_kj, "memory store"_kj, "memory raw"_kj, "copy"_kj};
  // Then gloo and MPI, those with figures first.
  constexpr size_t COUNT = kj::size(NAMES) + 2;
  REQUIRE(rows.size() == 2 * COUNT);
  uint skipped = 0;
  for (auto i: kj::indices(rows)) {
    auto row = rows[i].getObject();
    auto name = KJ_ASSERT_NONNULL(find(row, "name")).getString();
    if (i % COUNT < kj::size(NAMES)) {
      CHECK(name == NAMES[i % COUNT]);
    } else {
      CHECK((name == "gloo" || name == "MPI"));
    }
    CHECK(numberOf(row, "key_bytes") == (i < COUNT ? 64 : 40000));
    if (find(row, "skipped") != nullptr) {
      ++skipped;
      continue;
    }
    CHECK(numberOf(row, "trips") >= 3);
    double median = numberOf(row, "median_us");
    CHECK(numberOf(row, "best_us") > 0);
    CHECK(numberOf(row, "best_us") <= median);
    CHECK(numberOf(row, "gigabytes_per_s") * median * 1000 ==
          doctest::Approx(numberOf(row, "key_bytes")));
  }
  auto store = rows[0].getObject();
  CHECK(KJ_ASSERT_NONNULL(find(store, "other")).getString() == "tcp raw");
  // With a single block, the ratio is that of the medians.
  CHECK(numberOf(store, "ratio") ==
        doctest::Approx(numberOf(store, "median_us") / numberOf(rows[1].getObject(), "median_us")));
  if (skipped > 0) SKIP_CASE("no Python with PyTorch, or no MPI");
}

TEST_CASE(
    "bench kvstore: several workers, servers and keys make a table, and leave nothing behind") {
  auto ended = bench({"--bytes=4096", "--keys=3", "--workers=2", "--servers=2", "--pin=none",
      "--transport=unix", "--update=none", "--no-peers"});
  INFO(ended.errors);
  REQUIRE(ended.exitCode == 0);
  CHECK(tests::contains(ended.output, "4096 bytes × 3 keys, workers × servers: 2 × 2"));
  for (auto name: {"unix store ", "unix raw ", "memory raw ", "copy "}) {
    CHECK(tests::contains(ended.output, kj::str('\n', name)));
  }
  CHECK(!tests::contains(ended.output, "tcp"));
  CHECK(tests::processesWith("--bytes=4096").size() == 0);
}

TEST_CASE("bench kvstore: its processes die with it") {
  tests::Command command({"tools/bench/bench", "kvstore", "--bytes=4096", "--seconds=3600"});
  // This line comes before the processes start.
  REQUIRE(command.waitForOutput("workers on core"));
  kj::Array<tests::Process> processes;
  // They are copies of the bench.
  while (processes.size() < 3) processes = tests::processesWith("--seconds=3600");
  command.kill(SIGKILL);
  command.wait();
  CHECK(tests::haveEnded(tests::processesWith("--seconds=3600"), tests::PATIENCE_S));
  CHECK(tests::haveEnded(processes, tests::PATIENCE_S));
}

TEST_CASE("bench kvstore: refuses an impossible case as a wrong command") {
  CHECK(bench({"--bytes=5"}).exitCode == 2);
  CHECK(bench({"--transport=pigeon"}).exitCode == 2);
  CHECK(bench({"--pin=0"}).exitCode == 2);
  CHECK(bench({"--bytes=1073741824", "--keys=2"}).exitCode == 2);
  CHECK(tests::contains(tests::Command({"tools/bench/bench", "kvstore", "--help"}).wait().output,
      "bench kvstore --bytes 4194304 --keys 16 --workers 2 --servers 2"));
}

TEST_CASE("KvReplay: accepts the updater's result for whole arrays, and no other value") {
  for (bool sgd: {true, false}) {
    auto kvCase = smallCase(sgd);
    KvUpdater updater(sgd);
    KvReplay replay(kvCase);
    auto current = kj::heapArray<float>(kvCase.floats());
    auto next = kj::heapArray<float>(kvCase.floats());
    auto sum = kj::heapArray<float>(kvCase.floats());
    auto state = kj::heapArray<float>(kvCase.floats());
    for (auto i: kj::indices(current)) {
      current[i] = kvFirstValue(i);
      sum[i] = kvGradient(0, 1, i) + kvGradient(1, 1, i);
      state[i] = 0;
    }
    replay.compare(current);
    rpc::Slice slice{0, 0, kvCase.floats(), 0};
    for (uint round = 0; round < 2; ++round) {
      updater.update(slice, rpc::Round{round, sum, 2}, current, next, state);
      std::swap(current, next);
    }
    replay.advance(1, 2);
    replay.compare(current);
    current[KV_PERIOD + 5] = current[KV_PERIOD + 4];
    CHECK_THROWS(replay.compare(current));
  }
}

}  // namespace
}  // namespace tools
