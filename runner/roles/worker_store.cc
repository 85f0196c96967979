#include "runner/roles/worker_store.h"

#include "rpc/store/local_sgd.h"

namespace runner {

namespace {

class NoStore final: public rpc::KvStore {
public:
  void initialize() override {}
  void push(uint64_t, uint64_t, uint64_t) override {}
  void await(uint64_t, uint64_t, uint64_t) override {}
  void rest() override {}
  void refresh() override {}
  uint64_t updates() const override { return 0; }
};

WorkerStore around(kj::Own<rpc::UpdatingStore> store) {
  auto& remote = store->remote();
  return {kj::mv(store), remote};
}

}  // namespace

WorkerStore makeWorkerStore(const Experiment& experiment, const rpc::Placement& placement,
    uint rank, rpc::Updater& updater, kj::ArrayPtr<float> parameters,
    kj::ArrayPtr<const float> gradients, kj::Maybe<rpc::SharedMemory&> memory) {
  auto& kvstore = experiment.kvstore;
  auto rounds = experiment.rounds();
  if (kvstore.mode->shards == rpc::Mode::IN_WORKER) {
    return {rpc::newLocalStore(placement, rounds, updater, parameters, gradients), nullptr};
  }
  if (kvstore.mode->sends == rpc::Mode::DIFFERENCE) {
    return around(rpc::newLocalSgdStore(
        placement, rounds, rank, kvstore.localSteps, updater, parameters, gradients, memory));
  }
  if (kvstore.updatesInWorkers()) {
    return around(
        rpc::newWorkerUpdateStore(placement, rounds, rank, updater, parameters, gradients, memory));
  }
  auto store = rpc::RemoteStore::create(placement, rounds, rank, parameters, gradients, memory);
  auto& remote = *store;
  return {kj::mv(store), remote};
}

WorkerStore noStore() {
  return {kj::heap<NoStore>(), nullptr};
}

}  // namespace runner
