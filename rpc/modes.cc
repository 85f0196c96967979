#include "rpc/modes.h"

#include "configs/language/reader.h"

namespace rpc {

namespace {

constexpr Mode ROWS[] = {
    {"local",
        "One worker, no server: the worker calls its shard directly. The same bits as `dist_sync` "
        "with one worker.",
        false, Mode::ALL_WORKERS, false},
    {"device",
        "As `local`, with several devices: their gradients are added in the order of "
        "`cluster.devices`. The same sums as `dist_sync` with a worker for each device.",
        false, Mode::ALL_WORKERS, true},
    {"dist_sync",
        "A round sums one gradient of every worker, in rank order, and is applied once. Every "
        "worker computes step t on the values after round t. A worker adds the gradients of its "
        "devices, in their order, before it pushes.",
        true, Mode::ALL_WORKERS, true},
    {"dist_async",
        "Every gradient is applied by itself as it arrives. A worker computes on values that hold "
        "at least its own gradients.",
        true, Mode::EACH_PUSH, true},
};

}  // namespace

constinit const kj::ArrayPtr<const Mode> MODES(ROWS);

uint pushesPerRound(const Mode& mode, uint workers) {
  return mode.round == Mode::ALL_WORKERS ? workers : 1;
}

KvStoreConfig KvStoreConfig::read(configs::Reader& reader) {
  auto& mode =
      reader.choose("mode", "When gradients are applied and who waits for whom.", MODES, "local");
  auto sliceBytes = reader.integer("slice_bytes",
      "The largest piece of a parameter array that travels and is updated as one. Small models are "
      "cut finer, so that every server gets a fair share.",
      {.atLeast = 4096, .atMost = 256 << 20}, 1 << 20);
  auto& placement = reader.choose(
      "placement", "How the pieces are dealt to the servers.", PLACEMENTS, "balanced");
  return {&mode, uint64_t(sliceBytes), &placement};
}

}  // namespace rpc
