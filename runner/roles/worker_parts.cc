#include "runner/roles/worker_parts.h"

#include "rpc/shard/shard_server.h"
#include "rpc/shared_memory/shared_layout.h"
#include "runner/experiment/model_facts.h"
#include "runner/experiment/run_length.h"

namespace runner {

namespace {

kj::Own<io::Dataset> openData(const io::DataConfig& config, LiveProgress& progress) {
  OwnWork work(progress);
  return io::openDataset(config, io::unheard());
}

}  // namespace

WorkerParts::WorkerParts(const LoadedExperiment& loaded, const RoleOptions& options,
    const ModelFacts& facts, LiveProgress& progress, kj::FunctionParam<uint64_t()> prepare)
    : experiment(KJ_ASSERT_NONNULL(loaded.experiment)),
      facts(facts),
      rank(options.index),
      placement(placementOf(experiment, facts.graph)),
      trace(traceOf(options, experiment, facts)),
      updater(experiment, facts),
      dataset(openData(experiment.data, progress)),
      updates(updater.byValue()) {
  if (experiment.kvstore.sharesMemory()) memory = rpc::newWorkerMemory(placement);
  uint64_t firstStep = prepare();
  OwnWork work(progress);
  program = newProgram();
  batches = kj::heap<Batches>(*program, *dataset, experiment.data, experiment.train.seed,
      kj::max(experiment.cluster.workers, rank + 1), rank, firstStep, [&]() { work.next(); });
  // A worker that enters later learns its records then.
  if (wasDividedOtherwise(experiment) && firstStep > 0) {
    auto division = divisionOf(experiment, facts.passLength);
    batches->divideBy(kj::heap<io::Division>(kj::mv(division)), firstStep);
  }
  KJ_IF_MAYBE(own, updates) trainer = program->trainBy(*own);
  store = newStore();
  remote = store->remote();
  KJ_IF_MAYBE(r, remote) {
    KJ_IF_MAYBE(own, trace) r->traceTo(**own);
  }
}

kj::Own<nn::Program> WorkerParts::newProgram() const {
  // If the gradients are pushed as they are, the program writes them where servers can read them.
  kj::ArrayPtr<float> gradients;
  if (experiment.kvstore.mode->stepsAlone() == nullptr) {
    KJ_IF_MAYBE(own, memory) {
      gradients = rpc::WorkerLayout(placement).gradients((*own)->bytes());
    }
  }
  return programOf(experiment, facts.graph, nullptr, gradients);
}

kj::Own<rpc::KvStore> WorkerParts::newStore() {
  if (trainer != nullptr) return rpc::newNoStore();
  auto shared = memory.map([](auto& own) -> rpc::SharedMemory& { return *own; });
  return experiment.kvstore.mode->newStore({placement, experiment.rounds(), rank, updater,
      program->parameters(), program->gradients(), shared});
}

rpc::ServedShard WorkerParts::newShard(kj::UnixEventPort& port) {
  kj::Maybe<kj::UnixEventPort&> sharing;
  if (experiment.kvstore.sharesMemory()) sharing = port;
  kj::Maybe<rpc::ShardTrace&> shardTrace;
  KJ_IF_MAYBE(own, trace) {
    shardTrace = (*own)->ofShard(experiment.cluster.workers, placement.slices.size());
  }
  auto& updater = *KJ_ASSERT_NONNULL(ownShardUpdater);
  return rpc::newShardServer(placement, rank, experiment.rounds(), updater, sharing, shardTrace);
}

void WorkerParts::connect(IoThread& ioThread, uint64_t since) {
  kj::Maybe<IoThread::MakeShard> makeShard;
  if (experiment.kvstore.workersHoldShards()) {
    ownShardUpdater = shardUpdater(experiment, facts);
    makeShard = [this](kj::UnixEventPort& port) { return newShard(port); };
  }
  ioThread.start(remote, *experiment.kvstore.transport,
      rpc::limitsFor(placement, experiment.cluster.connectionSilence()),
      experiment.cluster.silence(), kj::mv(makeShard), since);
}

}  // namespace runner
