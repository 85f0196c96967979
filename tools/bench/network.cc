// `bench network`: measures the steps of an experiment on hosts behind slow links.
#include <kj/debug.h>

#include <algorithm>

#include "configs/language/failure.h"
#include "tools/bench/benches.h"
#include "tools/bench/command.h"
#include "tools/bench/kv_store.h"
#include "tools/bench/links.h"
#include "tools/bench/network_roles.h"
#include "tools/bench/network_rows.h"

namespace tools {
namespace {

// A raw stream transfers in one direction for about this long.
constexpr double RAW_S = 0.5;
constexpr uint RAW_TRIPS = 2;
constexpr double BITS_PER_BYTE = 8;
constexpr uint64_t MBIT = 1'000'000;

// Worker and server number i are at host i.
uint hostsOf(const runner::Experiment& experiment) {
  return kj::max(experiment.cluster.workers, experiment.cluster.servers);
}

// The bytes of a request and its answer, over one stream through two links.
class RawStream {
public:
  RawStream(Links& links, uint mbit)
      : side(kj::str("raw")), floats(RAW_S * mbit * MBIT / BITS_PER_BYTE / sizeof(float)) {
    addRawStream(side, floats, {}, links.connect(0, 1));
    side.check();
  }

  // Writes first, and then reads.
  double bytes_per_s() {
    auto trips_ns = side.trips(RAW_TRIPS);
    double best_ns = *std::min_element(trips_ns.begin(), trips_ns.end());
    return 2 * double(floats * sizeof(float)) / best_ns * 1e9;
  }

private:
  KvSide side;
  uint64_t floats;
};

// The experiment's workers and servers, connected.
class Job {
public:
  Job(Links& links, const runner::Experiment& experiment, NetworkRole role)
      : experiment(experiment), side(kj::str("job")) {
    auto connect = [&](uint worker, uint server) {
      // Within a host, the connection is as `kvstore.transport` says.
      bool isLocal = worker == server && experiment.kvstore.transport->hasLocal;
      return isLocal ? newUnixStream() : links.connect(worker, server);
    };
    auto start = [&](bool isServer) {
      return [&role, isServer](uint index) {
        role.isServer = isServer;
        role.index = index;
        become(wordsOf(role));
      };
    };
    side.addJob(experiment.cluster.workers, experiment.cluster.servers, {}, connect, start(false),
        start(true));
    seconds(KvOrder::EXCHANGE, 1);
  }

  // Returns the mean of `count` times over all workers, after `skipped` more times.
  double seconds(KvOrder::What what, uint count, uint skipped = 0) {
    double sum = 0;
    for (auto& times_ns: side.ask({what, skipped + count}, skipped + count)) {
      for (auto time_ns: times_ns.slice(skipped, times_ns.size())) sum += time_ns * 1e-9;
    }
    return sum / count / experiment.cluster.workers;
  }

  // Returns the mean of consecutive training steps. The first step is left out, because it finds
  // all values ready.
  double step_s(uint count) { return seconds(KvOrder::TRIPS, count, 1); }

  void wait(double seconds) { side.ask({KvOrder::WAIT, uint64_t(seconds * 1e9)}, 1); }

  // Throws unless the parameters of all workers are the same, if the mode guarantees that.
  void check() {
    if (experiment.rounds().counted != rpc::Rounds::ALL) return;
    if (experiment.kvstore.mode->stepsAlone() != nullptr) return;
    auto answers = side.ask({KvOrder::CHECK, 0}, 1);
    for (auto rank: kj::indices(answers)) {
      if (answers[rank][0] == answers[0][0]) continue;
      configs::fail("worker ", rank, " does not have the parameters of worker 0");
    }
  }

  // Returns the bytes of values so far through the busier direction of the busiest link.
  uint64_t busiest_bytes() {
    uint servers = experiment.cluster.servers;
    uint hosts = hostsOf(experiment);
    auto out = kj::heapArray<uint64_t>(hosts), in = kj::heapArray<uint64_t>(hosts);
    for (auto i: kj::indices(out)) out[i] = in[i] = 0;
    auto answers = side.ask({KvOrder::TRAFFIC, 0}, 2 * servers);
    for (auto worker: kj::indices(answers)) {
      for (uint server = 0; server < servers; ++server) {
        if (server == worker) continue;
        uint64_t pushed = answers[worker][2 * server], pulled = answers[worker][2 * server + 1];
        out[worker] += pushed;
        in[server] += pushed;
        out[server] += pulled;
        in[worker] += pulled;
      }
    }
    uint64_t most = 0;
    for (auto i: kj::indices(out)) most = kj::max(most, kj::max(out[i], in[i]));
    return most;
  }

private:
  const runner::Experiment& experiment;
  KvSide side;
};

class BenchNetwork: private ExperimentCommand {
public:
  explicit BenchNetwork(runner::CommandLine& commandLine): ExperimentCommand(commandLine, 10) {}

  kj::MainFunc getMain();

private:
  Validity setBandwidths(kj::StringPtr words);
  Validity run();
  NetworkRow measure(const runner::Experiment& experiment, uint mbit);

  kj::Vector<uint> bandwidths_mbit;  // empty: 1000
  bool waits = false;
  double wait_ms = 0;  // 0: the time that the network needs to compute
  uint rounds = 3;
  bool json = false;
};

kj::MainFunc BenchNetwork::getMain() {
  kj::MainBuilder builder(commandLine, "bench",
      "Times training steps of CONFIG on hosts behind slow links. Each worker and each server is a "
      "process. Worker and server number i are on host i, a network namespace whose link has a "
      "token bucket in each direction. Batches are synthetic. Needs root and iproute2. Leaves "
      "nothing behind.\n"
      "\n"
      "  bench network configs/cifar10_dist_sync.toml \\\n"
      "    --set cluster.workers=4 --set cluster.servers=4\n"
      "  bench network configs/cifar10_dist_sync.toml \\\n"
      "    --bandwidth 100,300,1000 --program wait\n"
      "\n"
      "The columns are:\n"
      "\n"
      "raw: throughput of one stream through two links.\n"
      "MB per step: values sent in the busier direction of the busiest link.\n"
      "network: time that the links need for these values at the raw speed.\n"
      "exchange: time of all pushes and pulls of a step, without computing.\n"
      "overhead: exchange - network, an option of `runner explain`.\n"
      "compute: time of a step without pushes and pulls, with all workers at once.\n"
      "bound: the larger of network and compute.\n"
      "share: bound / step.\n"
      "\n"
      "All figures are medians of rounds. Each round measures all of them.");
  addArguments(builder, "steps per measurement (default: 10)");
  return builder
      .addOptionWithArg({"bandwidth"}, KJ_BIND_METHOD(*this, setBandwidths), "N,N…",
          "speed of a link in each direction, in Mbit/s, at most 2500 (default: 1000)")
      .addOptionWithArg({"program"}, choiceSetter(waits, "wait", "real"), "real|wait",
          "what workers do: compute (default), or wait, where each segment takes its share of the "
          "time by FLOPs and no core is used")
      .addOptionWithArg({"ms"}, amountSetter(wait_ms, 60'000, "ms"), "MS",
          "time of a step with --program wait (default: what the network needs)")
      .addOptionWithArg(
          {"rounds"}, numberSetter(rounds), "N", "rounds of measurements (default: 3)")
      .addOption({"json"}, flagSetter(json), "prints JSON instead of a table")
      .callAfterParsing(KJ_BIND_METHOD(*this, run))
      .build();
}

Validity BenchNetwork::setBandwidths(kj::StringPtr words) {
  for (auto& word: split(words, ',')) {
    KJ_IF_MAYBE(mbit, numberOf(word, 1, Links::MBIT_MAX)) {
      bandwidths_mbit.add(*mbit);
    } else {
      return kj::str("not Mbit/s from 1 to ", Links::MBIT_MAX);
    }
  }
  return true;
}

Validity BenchNetwork::run() {
  if (wait_ms > 0 && !waits) return kj::str("--ms has no effect without --program wait");
  auto loaded = load();
  auto& experiment = KJ_ASSERT_NONNULL(loaded.experiment);
  if (!experiment.kvstore.hasServers()) {
    return kj::str("kvstore.mode = \"", experiment.kvstore.modeName(), "\" has no servers");
  }
  uint hosts = hostsOf(experiment);
  if (hosts < 2 || hosts > Links::HOSTS_MAX) {
    return kj::str("this command needs 2 to ", Links::HOSTS_MAX, " workers or servers");
  }
  if (bandwidths_mbit.size() == 0) bandwidths_mbit.add(1000);
  if (!json) runner::print(kj::str(experiment.cluster.roles(), "\n"));
  auto rows = KJ_MAP(mbit, bandwidths_mbit) {
    return measure(experiment, mbit);
  };
  runner::print(json ? jsonOf(rows) : textOf(kj::mv(rows)));
  return true;
}

NetworkRow BenchNetwork::measure(const runner::Experiment& experiment, uint mbit) {
  Links links(hostsOf(experiment), mbit);
  RawStream raw(links, mbit);
  Job job(links, experiment,
      {.isServer = true, .index = 0, .waits = waits, .file = path(), .settings = settings()});
  kj::Vector<NetworkRound> measured;
  for (uint i = 0; i < rounds; ++i) {
    NetworkRound round;
    round.raw_bytes_per_s = raw.bytes_per_s();
    uint64_t before = job.busiest_bytes();
    round.exchange_s = job.seconds(KvOrder::EXCHANGE, steps);
    round.bytes = double(job.busiest_bytes() - before) / steps;
    if (waits && i == 0) job.wait(wait_ms > 0 ? wait_ms / 1e3 : round.network_s());
    round.compute_s = job.seconds(KvOrder::COMPUTE, steps);
    round.step_s = job.step_s(steps);
    job.check();
    measured.add(round);
  }
  return rowOf(mbit, measured);
}

}  // namespace

kj::MainFunc benchNetwork(runner::CommandLine& commandLine) {
  return mainOf<BenchNetwork>(commandLine);
}

}  // namespace tools
