#include "rpc/modes/local_sgd_mode.h"

#include "configs/language/reader.h"
#include "rpc/modes/outer_updater.h"
#include "rpc/store/own_steps.h"

namespace rpc {

namespace {

double readOuterRate(configs::Reader& reader, double paper) {
  return reader.real("learning_rate",
      "The difference between the mean and the servers' parameters is multiplied by this number.",
      {.above = 0}, paper);
}

OuterConfig readAverage(configs::Reader&) {
  return {OuterConfig::AVERAGE, 1, 0.0};
}

OuterConfig readBlockMomentum(configs::Reader& reader) {
  double rate = readOuterRate(reader, 1);
  auto momentum = reader.maybeReal("momentum",
      "Share of the last change that is added to the next one. Default: 1 - 1 / workers, as in the "
      "paper.",
      {.atLeast = 0, .below = 1});
  return {OuterConfig::BLOCK_MOMENTUM, rate, momentum};
}

OuterConfig readNesterov(configs::Reader& reader) {
  double rate = readOuterRate(reader, 0.7);
  auto momentum = reader.real("momentum",
      "The momentum is a decaying sum of these differences. Each update keeps this share of it.",
      {.atLeast = 0, .below = 1}, 0.9);
  return {OuterConfig::NESTEROV, rate, momentum};
}

constexpr configs::Kind<OuterConfig> OUTERS[] = {
    {"average", "The mean becomes the new parameters (local SGD: Stich 2018, arXiv 1805.09767).",
        readAverage},
    {"block_momentum",
        "Adds a momentum to the change of the parameters w (BMUF: Chen and Huo 2016): v ← momentum "
        "· v + learning_rate · (mean - w); w ← w + v.",
        readBlockMomentum},
    {"nesterov",
        "SGD with Nesterov's momentum. The difference between the servers' parameters and the mean "
        "takes the place of the gradient (DiLoCo: Douillard et al. 2023, arXiv 2311.08105).",
        readNesterov},
};

class LocalSgdMode final: public Mode {
public:
  LocalSgdMode(const ModeRow& row, configs::Reader& reader)
      : Mode(row),
        steps(uint(reader.integer("local_steps",
            "For `local_sgd`: how many steps each worker makes before the next mean. Before the "
            "mean at the end of an epoch, there may be fewer.",
            {.atLeast = 1, .atMost = 1 << 20}, 16))),
        outer(reader.kind("outer",
            "For `local_sgd`: how the servers derive new parameters from the mean of all workers' "
            "parameters.",
            kj::arrayPtr(OUTERS, kj::size(OUTERS)), "average")) {}

  Rounds rounds(uint workers) const override {
    return {.mode = row.name, .workers = workers, .aggregate = workers};
  }

  kj::Maybe<uint> stepsAlone() const override { return steps; }

  kj::Own<KvStore> newStore(WorkerSetup setup) const override {
    return newOwnStepsStore(setup.placement, setup.rounds, setup.rank, {.steps = steps},
        setup.optimizer, setup.parameters, setup.gradients, setup.memory);
  }

  kj::Own<Updater> newShardUpdater(kj::Own<Updater>, uint64_t, uint workers) const override {
    return kj::heap<OuterUpdater>(outer, workers);
  }

  kj::Maybe<OwnUpdates> ownUpdates() const override {
    return OwnUpdates{"every worker updates its parameters by itself, on its host, until they meet",
        "with its own gradients"};
  }

private:
  const uint steps;
  const OuterConfig outer;
};

}  // namespace

kj::Own<const Mode> readLocalSgdMode(const ModeRow& row, configs::Reader& reader) {
  return kj::heap<LocalSgdMode>(row, reader);
}

}  // namespace rpc
