#include "tools/bench/network_roles.h"

#include <kj/debug.h>
#include <kj/hash.h>

#include "configs/language/failure.h"
#include "nn/network/initializer.h"
#include "rpc/shared_memory/shared_layout.h"
#include "runner/experiment/experiment.h"
#include "runner/experiment/model_facts.h"
#include "runner/logs/verb_times.h"
#include "runner/roles/store_updater.h"
#include "tools/bench/figures.h"
#include "tools/bench/roles.h"
#include "tools/bench/training.h"
#include "tools/bench/waiting.h"

namespace tools {
namespace {

runner::LoadedExperiment load(const NetworkRole& role) {
  auto loaded = runner::loadExperiment(role.file, role.settings);
  if (loaded.experiment == nullptr) configs::fail(loaded.errors);
  return loaded;
}

// One worker without data, logs and meetings.
class NetworkWorker {
public:
  NetworkWorker(const runner::Experiment& experiment, uint rank, bool waits)
      : experiment(experiment),
        facts(experiment),
        placement(runner::placementOf(experiment, facts.graph)),
        updater(experiment, facts),
        batch(facts.graph, waits ? 0 : experiment.data.batchSize, rank) {
    if (experiment.kvstore.sharesMemory()) memory = rpc::newWorkerMemory(placement);
    if (waits) {
      auto own = kj::heap<WaitingProgram>(facts.graph, rank, gradientsInMemory());
      waiting = *own;
      program = kj::mv(own);
    } else {
      program = runner::programOf(experiment, facts.graph, nullptr, gradientsInMemory());
      nn::initialize(facts.graph, experiment.model.initializer, experiment.train.seed,
          program->parameters(), program->statistics(), batch.get().pixels);
    }
    store = experiment.kvstore.mode->newStore(
        {placement, experiment.rounds(), rank, updater, program->parameters(), program->gradients(),
            memory.map([](auto& own) -> rpc::SharedMemory& { return *own; })});
    remote = store->remote();
    io = kj::heap<StoreThread>(KJ_ASSERT_NONNULL(remote), placement);
  }

  void run() {
    store->initialize();
    carryOutOrders([this](const KvOrder& order) { return carryOut(order); });
  }

private:
  // For a program whose gradients are pushed directly.
  kj::ArrayPtr<float> gradientsInMemory() const {
    if (experiment.kvstore.mode->stepsAlone() != nullptr) return nullptr;
    KJ_IF_MAYBE(own, memory) return rpc::WorkerLayout(placement).gradients((*own)->bytes());
    return nullptr;
  }

  kj::Vector<uint64_t> carryOut(const KvOrder& order) {
    kj::Vector<uint64_t> answer;
    switch (order.what) {
      case KvOrder::TRIPS:
        answer = timesOf(order.count, [this]() {
          setBatch();
          runner::VerbTimes verbs;
          trainingStep(*program, *store, facts.graph, step++, verbs);
        });
        awaitAll();
        break;
      case KvOrder::COMPUTE:
        answer = timesOf(order.count, [this]() { compute(); });
        break;
      case KvOrder::EXCHANGE:
        answer = timesOf(order.count, [this]() {
          auto& segments = facts.graph.segments;
          for (uint s = segments.size(); s-- > 0;) {
            store->push(step, segments[s].parameters.begin, segments[s].parameters.end);
          }
          ++step;
          awaitAll();
        });
        break;
      case KvOrder::WAIT:
        KJ_IF_MAYBE(waits, waiting) waits->setStep_ns(order.count);
        answer.add(0);
        break;
      case KvOrder::CHECK:
        answer.add(kj::hashCode(program->parameters().asBytes()));
        break;
      case KvOrder::TRAFFIC:
        for (auto& each: KJ_ASSERT_NONNULL(remote).traffic()) {
          answer.add(each.pushed_bytes);
          answer.add(each.pulled_bytes);
        }
        break;
    }
    return answer;
  }

  void compute() {
    uint segments = facts.graph.segments.size();
    setBatch();
    for (uint s = 0; s < segments; ++s) program->forward(nn::Phase::TRAIN, s);
    nn::backwardAll(*program, segments, [](uint) {});
  }

  void setBatch() {
    auto& all = batch.get();
    program->setBatch(all.pixels, all.labels, all.draws);
  }
  void awaitAll() { store->await(step, 0, facts.graph.parameters); }

  const runner::Experiment& experiment;
  const runner::ModelFacts facts;
  const rpc::Placement placement;
  runner::StoreUpdater updater;
  OwnBatch batch;
  kj::Maybe<kj::Own<rpc::SharedMemory>> memory;  // where the gradients are, if servers may map them
  kj::Own<nn::Program> program;
  kj::Maybe<WaitingProgram&> waiting;  // the program, if it only waits
  kj::Own<rpc::KvStore> store;
  kj::Maybe<rpc::RemoteStore&> remote;
  uint64_t step = 0;
  kj::Own<StoreThread> io;
};

}  // namespace

kj::Array<kj::String> wordsOf(const NetworkRole& role) {
  kj::Vector<kj::String> words;
  for (auto& word: cells("/proc/self/exe", NETWORK_ROLE,
           role.isServer ? "server"
           : role.waits  ? "waiter"
                         : "worker",
           role.index, role.file)) {
    words.add(kj::mv(word));
  }
  for (auto setting: role.settings) words.add(kj::str(setting));
  return words.releaseAsArray();
}

void runNetworkRole(kj::ArrayPtr<const kj::StringPtr> words) {
  KJ_REQUIRE(words.size() >= 3, "a role takes three words or more; `bench network` starts it");
  NetworkRole role{.isServer = words[0] == "server",
      .index = words[1].parseAs<uint>(),
      .waits = words[0] == "waiter",
      .file = words[2],
      .settings = words.slice(3, words.size())};
  auto loaded = load(role);
  auto& experiment = KJ_ASSERT_NONNULL(loaded.experiment);
  if (!role.isServer) return NetworkWorker(experiment, role.index, role.waits).run();
  runner::ModelFacts facts(experiment);
  auto updater = runner::shardUpdater(experiment, facts);
  serveShard(runner::placementOf(experiment, facts.graph), role.index, experiment.rounds(),
      *updater, experiment.kvstore.sharesMemory());
}

}  // namespace tools
