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
        "As `local`, with several devices: their gradients are added in the order of "
        "`cluster.devices`. The sums are those of `dist_sync` with one worker per device.",
        Shards::IN_WORKER, true, nullptr, readSyncMode},
    {"dist_sync",
        "Each round adds one gradient from every worker, in rank order, and updates the parameters "
        "once. Every worker computes its next step on the values after this round. A worker adds "
        "the gradients of its devices, in their order, before it pushes.",
        Shards::IN_SERVERS, true, DIST_SYNC_KEYS, readSyncMode},
    {"dist_async",
        "Every gradient is applied by itself as it arrives. A worker computes on values that "
        "include at least all gradients that it has pushed itself.",
        Shards::IN_SERVERS, true, DIST_ASYNC_KEYS, readAsyncMode},
    {"dist_ssp",
        "Every gradient is applied as it arrives, divided by the number of workers. A worker "
        "continues when the slowest one is at most `staleness` steps behind it. A staleness of 0 "
        "gives `dist_sync`.",
        Shards::IN_SERVERS, true, DIST_SSP_KEYS, readAsyncMode},
    {"dc_asgd",
        "As `dist_async`, but the server first corrects each gradient for the updates since the "
        "values that the gradient was computed on. The server keeps these values for every worker.",
        Shards::IN_SERVERS, true, DC_ASGD_KEYS, readAsyncMode},
    {"local_sgd",
        "A worker makes `local_steps` steps by itself, with its own optimizer. Then the servers "
        "take the mean of all workers' values, or continue from it as `outer` says. All workers "
        "continue with the result. An epoch ends with such a mean.",
        Shards::IN_SERVERS, true, LOCAL_SGD_KEYS, readLocalSgdMode},
    {"easgd",
        "Elastic averaging: every worker trains its own values. After every `period_steps` steps "
        "its values and the servers' move towards each other by `moving_rate`. Nobody waits for "
        "others. The servers' values are validated and saved.",
        Shards::IN_SERVERS, true, EASGD_KEYS, readEasgdMode},
    {"allreduce",
        "`dist_sync` without servers: every worker holds a share of the parameters. For this "
        "share, it adds the gradients of all workers in rank order, makes the update, and sends "
        "the new values to all workers. The results have the same bits as those of `dist_sync`.",
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
    // The reference has the keys of all rows. Rows with the same function share its keys.
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
      "Small models are cut into smaller slices, so that the servers can share them evenly. On "
      "links of 1 Gbit/s and less, 32768 is better: slices that the next step needs first then "
      "wait for shorter ones that are already being sent.",
      {.atLeast = 4096, .atMost = 256 << 20}, 1 << 20);
  config.slice_bytes = uint64_t(sliceBytes);
  config.placement =
      &reader.choose("placement", "How slices are assigned to servers.", PLACEMENTS, "balanced");
  if (config.exchanges() || reader.isManual()) {
    config.transport = &reader.choose(
        "transport", "How workers reach servers. Never changes a result.", TRANSPORTS, "auto");
  }
  return config;
}

}  // namespace rpc
