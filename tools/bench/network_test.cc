// Tests that `bench network` prints consistent figures and leaves nothing behind. Does not test
// speeds.
#include <capnp/compat/json.h>
#include <capnp/message.h>
#include <doctest/doctest.h>
#include <signal.h>

#include "tests/command.h"
#include "tests/text.h"
#include "tools/bench/network_roles.h"
#include "tools/bench/network_rows.h"

namespace tools {
namespace {

constexpr kj::StringPtr CONFIG = "tests/cluster/mlp.toml"_kj;
constexpr uint64_t MODEL_BYTES = 4 * 109386;

kj::Vector<kj::StringPtr> bench(std::initializer_list<kj::StringPtr> words) {
  kj::Vector<kj::StringPtr> all;
  for (auto word: {"tools/bench/bench"_kj, "network"_kj, CONFIG}) all.add(word);
  for (auto word: words) all.add(word);
  return all;
}

// Returns the devices of this process's own network.
kj::String devices() {
  return tests::Command({"ip"_kj, "-brief"_kj, "link"_kj}).wait().output;
}

double numberOf(capnp::JsonValue::Reader row, kj::StringPtr name) {
  for (auto field: row.getObject()) {
    if (field.getName() == name) return field.getValue().getNumber();
  }
  return -1;
}

void checkFits(capnp::JsonValue::Reader row, double mbit) {
  CHECK(numberOf(row, "mbit_per_s") == mbit);
  // The burst of a token bucket is less than 3 % of a stream.
  CHECK(numberOf(row, "raw_mbit_per_s") > 0);
  CHECK(numberOf(row, "raw_mbit_per_s") < 1.03 * mbit);
  // Of two hosts, each sends half of the values to the other's server, and the answers for the
  // other half.
  CHECK(numberOf(row, "bytes") == doctest::Approx(MODEL_BYTES).epsilon(0.1));
  double network_ms = numberOf(row, "network_ms");
  CHECK(network_ms * numberOf(row, "raw_mbit_per_s") ==
        doctest::Approx(numberOf(row, "bytes") * 8 / 1e3).epsilon(0.01));
  CHECK(numberOf(row, "exchange_ms") ==
        doctest::Approx(network_ms + numberOf(row, "overhead_ms")).epsilon(0.01));
  double bound_ms = kj::max(network_ms, numberOf(row, "compute_ms"));
  CHECK(numberOf(row, "step_ms") ==
        doctest::Approx(bound_ms * numberOf(row, "step_per_bound")).epsilon(0.01));
}

TEST_CASE(
    "bench network: figures of waiting and of real steps are consistent, and nothing is left "
    "behind") {
  auto before = devices();
  for (auto program: {"--program=wait"_kj, "--program=real"_kj}) {
    auto ended =
        tests::Command(bench({"--bandwidth=50,400", program, "--steps=2", "--rounds=1", "--json"}))
            .wait();
    INFO(ended.errors);
    REQUIRE(ended.exitCode == 0);
    capnp::MallocMessageBuilder message;
    auto root = message.initRoot<capnp::JsonValue>();
    capnp::JsonCodec().decodeRaw(ended.output, root);
    auto rows = root.asReader().getArray();
    REQUIRE(rows.size() == 2);
    checkFits(rows[0], 50);
    checkFits(rows[1], 400);
    CHECK(tests::processesWith(NETWORK_ROLE).size() == 0);
  }
  CHECK(devices() == before);
}

TEST_CASE("bench network: leaves nothing behind after Ctrl-C or a kill") {
  auto before = devices();
  for (int signal: {SIGINT, SIGKILL}) {
    tests::Command command(bench({"--program=wait", "--ms=60000"}));
    // This line comes before the processes start.
    REQUIRE(command.waitForOutput("2 servers and 2 workers"));
    kj::Array<tests::Process> processes;
    while (processes.size() < 4 && tests::processesWith("--ms=60000").size() > 0) {
      processes = tests::processesWith(NETWORK_ROLE);
    }
    REQUIRE(processes.size() == 4);
    command.kill(signal);
    CHECK(command.wait().signal == signal);
    CHECK(tests::haveEnded(processes, tests::PATIENCE_S));
  }
  CHECK(devices() == before);
}

TEST_CASE(
    "bench network: says that it needs root, and refuses an impossible case as a wrong command") {
  auto words = bench({"--program=wait"});
  kj::Vector<kj::StringPtr> asNobody;
  for (auto word: {"unshare"_kj, "--user"_kj}) asNobody.add(word);
  asNobody.addAll(words);
  auto ended = tests::Command(asNobody).wait();
  CHECK(ended.exitCode == 1);
  CHECK(tests::contains(ended.errors, "which only root can create. Run it as root"));
  CHECK(tests::Command(bench({"--ms=5"})).wait().exitCode == 2);
  CHECK(tests::Command(bench({"--bandwidth=10000"})).wait().exitCode == 2);
  CHECK(tests::Command(bench({"--set=kvstore.mode=\"local\"", "--set=cluster.workers=1",
                           "--set=cluster.servers=0"}))
            .wait()
            .exitCode == 2);
}

TEST_CASE("rowOf: takes medians of rounds, and of their ratios") {
  NetworkRound rounds[] = {
      {.raw_bytes_per_s = 100e6, .bytes = 50e6, .exchange_s = 0.6, .compute_s = 0.25, .step_s = 1},
      {.raw_bytes_per_s = 200e6, .bytes = 50e6, .exchange_s = 0.6, .compute_s = 0.5, .step_s = 0.6},
      {.raw_bytes_per_s = 100e6,
          .bytes = 50e6,
          .exchange_s = 0.7,
          .compute_s = 0.5,
          .step_s = 0.7}};
  // Mbit/s, raw, MB, network, exchange, overhead, compute, step, step / bound, share
  CHECK(kj::strArray(rowOf(3, rounds).cells, " ") ==
        "3 800.0 50.000 500.00 600.00 200.00 500.00 700.00 1.400 71.4 %");
}

}  // namespace
}  // namespace tools
