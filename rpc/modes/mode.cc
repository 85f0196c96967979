#include "rpc/modes/mode.h"

#include "rpc/store/remote_store.h"

namespace rpc {

bool ModeRow::has(kj::StringPtr key) const {
  for (auto own: keys) {
    if (own == key) return true;
  }
  return false;
}

kj::Own<KvStore> Mode::newStore(WorkerSetup setup) const {
  if (row.shards == Shards::IN_WORKER) {
    return newLocalStore(
        setup.placement, setup.rounds, setup.optimizer, setup.parameters, setup.gradients);
  }
  return RemoteStore::create(
      setup.placement, setup.rounds, setup.rank, setup.parameters, setup.gradients, setup.memory);
}

kj::Own<Updater> Mode::newShardUpdater(kj::Own<Updater> optimizer, uint64_t, uint) const {
  return optimizer;
}

}  // namespace rpc
