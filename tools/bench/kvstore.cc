// `bench kvstore`: measures push and pull beside limits of the machine.
#include <kj/debug.h>
#include <unistd.h>

#include "runner/system/output.h"
#include "tools/bench/benches.h"
#include "tools/bench/command.h"
#include "tools/bench/kv_peers.h"
#include "tools/bench/kv_rows.h"
#include "tools/bench/kv_store.h"

namespace tools {
namespace {

// A ping, the gradients of a 784-100-10 mlp and of inception-bn-28-small, and a large model.
constexpr uint64_t SIZES[] = {64, 318'040, 6'611'304, 64 << 20};
constexpr uint64_t BYTES_MAX = 1 << 30;

constexpr Wire STORE_WIRES[] = {Wire::TCP, Wire::TLS, Wire::UNIX, Wire::MEMORY};

// A block has at least TRIPS_MIN round trips, and at most TRIPS_MAX.
constexpr uint64_t TRIPS_MIN = 3, TRIPS_MAX = 20'000;
constexpr double WARM_UP_S = 0.1;

kj::String nameOf(Core core) {
  return core == ANY_CORE ? kj::str("any") : kj::str(core);
}

uint64_t tripsFor(double seconds, double trip_us) {
  double trips = seconds * 1e6 / kj::max(trip_us, 0.1);
  return uint64_t(kj::max(double(TRIPS_MIN), kj::min(double(TRIPS_MAX), trips)));
}

class BenchKvStore {
public:
  explicit BenchKvStore(runner::CommandLine& commandLine): commandLine(commandLine) {}

  kj::MainFunc getMain();

private:
  Validity setBytes(kj::StringPtr words);
  Validity setWires(kj::StringPtr words);
  Validity setCores(kj::StringPtr words);
  Validity run();
  KvRows measure(const KvCase& kvCase);

  runner::CommandLine& commandLine;
  kj::Vector<uint64_t> sizes;  // empty: SIZES
  kj::Vector<Wire> wires;      // empty: all that the store has
  KvCores cores{allowedCores().front(), allowedCores().back()};
  kj::Vector<kj::Own<KvPeer>> peers;
  uint keys = 1;
  uint workers = 1;
  uint servers = 1;
  uint rounds = 5;
  uint slice_bytes = 1 << 20;  // the default of kvstore.slice_bytes
  double seconds = 0.5;
  bool sgd = true;
  bool hasPeers = true;
  kj::StringPtr python;  // of --python; empty: the newest PyTorch on the path
  bool json = false;
};

kj::MainFunc BenchKvStore::getMain() {
  return kj::MainBuilder(commandLine, "bench",
      "Measures push and pull of the parameter server, as a training worker uses them (dist_sync), "
      "and compares them with what the machine can do. The comparisons are a raw stream of the "
      "same kind that writes and reads back as much, shared memory, copies, and the allreduces of "
      "gloo and MPI where PyTorch, mpirun and mpicc are installed. Each worker, each server, and "
      "each end of a raw stream is a process. All are measured in turn, block by block, on the "
      "same cores. First, the results are compared bit by bit with a separate computation of the "
      "same updates. If they are wrong, no figures are printed.\n"
      "\n"
      "  bench kvstore\n"
      "  bench kvstore --bytes 318040 --transport unix --json\n"
      "  bench kvstore --bytes 4194304 --keys 16 --workers 2 --servers 2\n"
      "\n"
      "GB/s are those of one worker in each direction. CPU is the time of all processes that take "
      "part. ratio is the time of a store divided by that of the raw stream of its kind, the "
      "median of the blocks. best is the same for the shortest round trips. speed is 1 / ratio. "
      "For gloo and MPI, these figures compare with the first store. Run it from the project's "
      "folder, with nothing else running on the machine.")
      .addOptionWithArg({"bytes"}, KJ_BIND_METHOD(*this, setBytes), "N,N…",
          "bytes per key (default: 64,318040,6611304,67108864)")
      .addOptionWithArg(
          {"keys"}, numberSetter(keys), "K", "number of keys of that size (default: 1)")
      .addOptionWithArg({"workers"}, numberSetter(workers), "W", "worker processes (default: 1)")
      .addOptionWithArg({"servers"}, numberSetter(servers), "S", "server processes (default: 1)")
      .addOptionWithArg({"transport"}, KJ_BIND_METHOD(*this, setWires), "WORD,WORD…",
          "tcp, tls, unix, memory, or several of them (default: all)")
      .addOptionWithArg({"update"}, choiceSetter(sgd, "sgd", "none"), "none|sgd",
          "what the servers do with a sum: update by momentum SGD (default), or send it back")
      .addOptionWithArg(
          {"slice-bytes"}, numberSetter(slice_bytes), "N", "kvstore.slice_bytes (default: 1048576)")
      .addOptionWithArg({"rounds"}, numberSetter(rounds), "N", "blocks per row (default: 5)")
      .addOptionWithArg({"seconds"}, amountSetter(seconds, 3600, "seconds"), "S",
          "seconds per block, which has at least 3 round trips (default: 0.5)")
      .addOptionWithArg({"pin"}, KJ_BIND_METHOD(*this, setCores), "W,S",
          "the core of the workers and that of the servers, or none (default: the first and the "
          "last)")
      .addOptionWithArg({"python"}, wordSetter(python), "PATH",
          "a Python that has PyTorch, as in `bench peers`: for gloo")
      .addOption({"no-peers"}, flagSetter(hasPeers, false), "skips the allreduces of gloo and MPI")
      .addOption({"json"}, flagSetter(json), "prints JSON instead of tables")
      .callAfterParsing(KJ_BIND_METHOD(*this, run))
      .build();
}

Validity BenchKvStore::setBytes(kj::StringPtr words) {
  for (auto& word: split(words, ',')) {
    auto bytes = numberOf(word, sizeof(float), BYTES_MAX).orDefault(1);
    if (bytes % sizeof(float) != 0) return kj::str("not a multiple of 4 from 4 to ", BYTES_MAX);
    sizes.add(bytes);
  }
  return true;
}

Validity BenchKvStore::setWires(kj::StringPtr words) {
  for (auto& word: split(words, ',')) {
    size_t before = wires.size();
    for (auto wire: STORE_WIRES) {
      if (kj::str(wire) == word) wires.add(wire);
    }
    if (wires.size() == before) return kj::str("no such transport");
  }
  return true;
}

Validity BenchKvStore::setCores(kj::StringPtr words) {
  if (words == "none") {
    cores = KvCores{};
    return true;
  }
  auto parts = split(words, ',');
  auto allowed = allowedCores();
  kj::Vector<Core> chosen;
  for (auto& word: parts) {
    for (Core core: allowed) {
      if (kj::str(core) == word) chosen.add(core);
    }
  }
  if (parts.size() != 2 || chosen.size() != 2) {
    return kj::str("neither `none` nor two cores that this process may use");
  }
  cores = {chosen[0], chosen[1]};
  return true;
}

Validity BenchKvStore::run() {
  if (sizes.size() == 0) sizes.addAll(kj::arrayPtr(SIZES, kj::size(SIZES)));
  if (wires.size() == 0) wires.addAll(kj::arrayPtr(STORE_WIRES, kj::size(STORE_WIRES)));
  if (workers > 64 || servers > 64) return kj::str("at most 64 workers and 64 servers are allowed");
  for (auto bytes: sizes) {
    if (bytes * keys > BYTES_MAX) {
      return kj::str("all keys together may have at most ", BYTES_MAX, " bytes");
    }
  }
  if (hasPeers) {
    peers.add(newGloo(python));
    peers.add(newMpi());
    for (auto& peer: peers) {
      if (peer->version.size() == 0) continue;
      runner::writeQuietly(STDERR_FILENO, kj::str(peer->name, ": ", peer->version, "\n"));
    }
  }

  auto placement = kj::str("\"worker_core\":\"", nameOf(cores.workers), "\",\"server_core\":\"",
      nameOf(cores.servers), "\"");
  runner::print(json ? kj::str("{", placement, ",\"rows\":[\n")
                     : kj::str("workers on core ", nameOf(cores.workers), ", servers on core ",
                           nameOf(cores.servers), "; all values are right\n"));
  for (auto i: kj::indices(sizes)) {
    auto rows = measure({.key_bytes = sizes[i],
        .keys = keys,
        .workers = workers,
        .servers = servers,
        .slice_bytes = slice_bytes,
        .sgd = sgd});
    runner::print(json ? kj::str(i > 0 ? ",\n" : "", jsonOf(rows)) : textOf(rows));
  }
  if (json) runner::print("]}\n");
  return true;
}

KvRows BenchKvStore::measure(const KvCase& kvCase) {
  KvRows rows{kvCase, {}};
  kj::Vector<kj::Own<KvSide>> sides;
  auto add = [&](kj::Own<KvSide> side, kj::Maybe<uint> other = nullptr) {
    rows.rows.add(KvRow{.name = kj::str(side->name), .other = other});
    sides.add(kj::mv(side));
  };
  bool hasMemory = false;
  for (auto wire: wires) {
    add(startStore(kvCase, wire, cores), uint(sides.size() + 1));
    // The limit of TLS is unencrypted TCP, so that the ratio includes the cost of encryption.
    add(startLimit(kvCase, wire == Wire::TLS ? Wire::TCP : wire, cores));
    hasMemory = hasMemory || wire == Wire::MEMORY;
  }
  if (!hasMemory) add(startLimit(kvCase, Wire::MEMORY, cores));
  add(startLimit(kvCase, Wire::COPY, cores));
  for (auto& peer: peers) {
    if (peer->missing == nullptr) add(peer->start(kvCase, cores), 0u);
  }

  for (auto& side: sides) side->check();
  auto trips = KJ_MAP(i, kj::indices(sides)) {
    auto& figures = rows.rows[i].figures;
    figures.block(*sides[i], TRIPS_MIN, false);
    figures.block(*sides[i], tripsFor(WARM_UP_S, figures.lastMedian_us()), false);
    return tripsFor(seconds, figures.lastMedian_us());
  };
  for (uint round = 0; round < rounds; ++round) {
    for (auto i: kj::indices(sides)) rows.rows[i].figures.block(*sides[i], trips[i], true);
  }
  for (auto& side: sides) side->check();
  for (auto& peer: peers) {
    KJ_IF_MAYBE(reason, peer->missing) {
      rows.rows.add(KvRow{.name = kj::str(peer->name), .skipped = kj::str(*reason)});
    }
  }
  return rows;
}

}  // namespace

kj::MainFunc benchKvStore(runner::CommandLine& commandLine) {
  return mainOf<BenchKvStore>(commandLine);
}

}  // namespace tools
