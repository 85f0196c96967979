#include "runner/worker_store.h"

#include "rpc/worker_update.h"

namespace runner {

namespace {

WorkerStore around(kj::Own<rpc::UpdatingStore> store) {
  auto& remote = store->remote();
  return {kj::mv(store), remote};
}

}  // namespace

WorkerStore makeWorkerStore(const Experiment& experiment, const rpc::Placement& placement,
    uint rank, rpc::Updater& updater, kj::ArrayPtr<float> parameters,
    kj::ArrayPtr<const float> gradients) {
  auto& kvstore = experiment.kvstore;
  auto rounds = experiment.rounds();
  if (kvstore.mode->shards == rpc::Mode::IN_WORKER) {
    return {rpc::newLocalStore(placement, rounds, updater, parameters, gradients), nullptr};
  }
  if (kvstore.updatesInWorkers()) {
    return around(
        rpc::newWorkerUpdateStore(placement, rounds, rank, updater, parameters, gradients));
  }
  auto store = rpc::RemoteStore::create(placement, rounds, rank, parameters, gradients);
  auto& remote = *store;
  return {kj::mv(store), remote};
}

}  // namespace runner
