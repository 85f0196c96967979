#include "rpc/modes/modes.h"

#include <kj/debug.h>

#include "configs/language/reader.h"
#include "rpc/modes/async_modes.h"
#include "rpc/modes/easgd_mode.h"
#include "rpc/modes/local_sgd_mode.h"
#include "rpc/modes/sync_modes.h"

namespace rpc {

namespace {

constexpr kj::StringPtr DIST_SYNC_KEYS[] = {"aggregate"_kj, "aggregate_from"_kj, "update"_kj};
constexpr kj::StringPtr DIST_ASYNC_KEYS[] = {"staleness_aware"_kj};
constexpr kj::StringPtr DIST_SSP_KEYS[] = {"staleness"_kj, "staleness_aware"_kj};
constexpr kj::StringPtr DC_ASGD_KEYS[] = {"staleness_aware"_kj, "compensation"_kj};
constexpr kj::StringPtr LOCAL_SGD_KEYS[] = {"local_steps"_kj, "outer"_kj};
constexpr kj::StringPtr EASGD_KEYS[] = {"period_steps"_kj, "moving_rate"_kj};
constexpr kj::StringPtr ALLREDUCE_KEYS[] = {"update"_kj};

constexpr ModeRow ROWS[] = {
    {"local",
        "One worker, no server: the worker calls its shard directly. It trains the same bits as "
        "`dist_sync` with one worker.",
        Shards::IN_WORKER, false, nullptr, readSyncMode},
    {"device",
        "Like `local`, but with several devices: their gradients are added in the order of "
        "`cluster.devices`. The sums are those of `dist_sync` with one worker per device.",
        Shards::IN_WORKER, true, nullptr, readSyncMode},
    {"dist_sync",
        "Each round adds one gradient from every worker, in rank order, and updates the parameters "
        "once. Every worker computes its next step with the parameters after this update. A worker "
        "with several devices first adds the gradients of its devices, in their order.",
        Shards::IN_SERVERS, true, DIST_SYNC_KEYS, readSyncMode},
    {"dist_async",
        "Every gradient is applied by itself when it arrives. The parameters with which a worker "
        "computes include at least all gradients that this worker has pushed.",
        Shards::IN_SERVERS, true, DIST_ASYNC_KEYS, readAsyncMode},
    {"dist_ssp",
        "Every gradient is divided by the number of workers, and applied when it arrives. A worker "
        "waits while the slowest worker is more than `staleness` steps behind it. A staleness of 0 "
        "gives `dist_sync`.",
        Shards::IN_SERVERS, true, DIST_SSP_KEYS, readAsyncMode},
    {"dc_asgd",
        "Like `dist_async`, but the server first corrects each gradient for the updates that were "
        "made after the worker had fetched its parameters. For this, the server keeps a copy of "
        "these parameters for every worker.",
        Shards::IN_SERVERS, true, DC_ASGD_KEYS, readAsyncMode},
    {"local_sgd",
        "Each worker makes `local_steps` steps by itself, with its own optimizer. Then the servers "
        "compute the mean of all workers' parameters, and derive new parameters from it as `outer` "
        "says. All workers continue with the result. Every epoch ends with such a mean.",
        Shards::IN_SERVERS, true, LOCAL_SGD_KEYS, readLocalSgdMode},
    {"easgd",
        "Elastic averaging: every worker trains its own parameters. After every `period_steps` "
        "steps, its parameters and those of the servers move towards each other by `moving_rate`. "
        "No worker waits for another. The parameters of the servers are validated and saved.",
        Shards::IN_SERVERS, true, EASGD_KEYS, readEasgdMode},
    {"allreduce",
        "`dist_sync` without servers: every worker holds a share of the parameters. For this "
        "share, it adds the gradients of all workers in rank order, makes the update, and sends "
        "the new values to all workers. The results are the same, to the last bit, as those of "
        "`dist_sync`.",
        Shards::IN_EVERY_WORKER, true, ALLREDUCE_KEYS, readSyncMode},
};

// Reports a key that only the modes `where` have.
void refuse(
    configs::Reader& reader, const ModeRow& chosen, kj::StringPtr key, kj::StringPtr where) {
  reader.refuse(key, kj::str("mode `", chosen.name, "` has no `", key, "`"),
      kj::str("leave it out, or choose mode = \"", where, "\""), {"mode"_kj});
}

kj::Own<const Mode> readMode(configs::Reader& reader) {
  auto& chosen =
      reader.choose("mode", "When gradients are applied and who waits for whom.", MODES, "local");
  auto mode = chosen.read(chosen, reader);
  for (auto row = MODES.begin(); row < MODES.end(); row++) {
    for (auto key: row->keys) {
      if (!chosen.has(key)) refuse(reader, chosen, key, row->name);
    }
    // The manual has the keys of all rows. Rows with the same function share its keys.
    bool isRead = !reader.isManual() || row->read == chosen.read;
    for (auto before = MODES.begin(); before < row; before++) {
      isRead = isRead || before->read == row->read;
    }
    if (!isRead) row->read(*row, reader);
  }
  return mode;
}

}  // namespace

constinit const kj::ArrayPtr<const ModeRow> MODES(ROWS);

uint KvStoreConfig::shards(uint servers, uint workers) const {
  switch (mode->row.shards) {
    case Shards::IN_WORKER:
      return 1;
    case Shards::IN_SERVERS:
      return servers;
    case Shards::IN_EVERY_WORKER:
      return workers;
  }
  KJ_UNREACHABLE;
}

Rounds KvStoreConfig::rounds(uint workers) const {
  auto rounds = mode->rounds(workers);
  bool answersSums = rounds.codec.answersSums;
  rounds.codec = codec;
  rounds.codec.answersSums = answersSums;
  return rounds;
}

KvStoreConfig KvStoreConfig::read(configs::Reader& reader) {
  KvStoreConfig config{};
  config.mode = readMode(reader);
  config.transport = TRANSPORTS.begin();
  if (!config.exchanges() && !reader.isManual()) {
    for (auto key: {"compression"_kj, "wire"_kj, "transport"_kj}) {
      refuse(reader, config.mode->row, key, "dist_sync");
    }
  } else {
    config.codec = codec::Codec::read(reader);
  }
  auto sliceBytes = reader.integer("slice_bytes",
      "The size of the largest slice of a parameter array. A slice is sent and updated as a whole. "
      "With the optimizers `lars` and `muon`, each key is one slice, however large it is. Small "
      "models are cut into smaller slices, so that the servers can share them evenly. On links of "
      "1 Gbit/s and less, 32768 is better: a slice that the next step needs early then spends less "
      "time waiting for slices that are already being sent.",
      {.atLeast = 4096, .atMost = 256 << 20}, 1 << 20);
  config.slice_bytes = uint64_t(sliceBytes);
  config.placement =
      &reader.choose("placement", "How slices are assigned to servers.", PLACEMENTS, "balanced");
  if (config.exchanges() || reader.isManual()) {
    config.transport = &reader.choose("transport",
        "How workers and servers exchange gradients and parameters. Does not change results. Not "
        "for modes `local` and `device`.",
        TRANSPORTS, "auto");
  }
  return config;
}

}  // namespace rpc
