#include "rpc/modes.h"

#include "configs/language/reader.h"

namespace rpc {

namespace {

constexpr Mode ROWS[] = {
    {"local",
        "One worker, no server: the worker calls its shard directly. The same bits as `dist_sync` "
        "with one worker.",
        Mode::IN_WORKER, Mode::GRADIENT, Mode::WITH_ALL, Mode::ROUND, Mode::AS_IT_IS, false},
    {"device",
        "As `local`, with several devices: their gradients are added in the order of "
        "`cluster.devices`. The same sums as `dist_sync` with a worker for each device.",
        Mode::IN_WORKER, Mode::GRADIENT, Mode::WITH_ALL, Mode::ROUND, Mode::AS_IT_IS, true},
    {"dist_sync",
        "A round sums one gradient of every worker, in rank order, and is applied once. Every "
        "worker computes step t on the values after round t. A worker adds the gradients of its "
        "devices, in their order, before it pushes.",
        Mode::IN_SERVERS, Mode::GRADIENT, Mode::WITH_ALL, Mode::ROUND, Mode::AS_IT_IS, true},
    {"dist_async",
        "Every gradient is applied by itself as it arrives. A worker computes on values that hold "
        "at least its own gradients.",
        Mode::IN_SERVERS, Mode::GRADIENT, Mode::BY_ITSELF, Mode::AT_ONCE, Mode::AS_IT_IS, true},
    {"dist_ssp",
        "Every gradient is applied as it arrives, with 1 / workers of the step. A worker goes on "
        "when the slowest is at most `staleness` steps behind it. With a staleness of 0 it is "
        "`dist_sync`.",
        Mode::IN_SERVERS, Mode::GRADIENT, Mode::BY_ITSELF, Mode::BOUND, Mode::AS_IT_IS, true},
    {"dc_asgd",
        "As `dist_async`, but each gradient is first corrected for what has changed since the "
        "values that it was computed on, which the server keeps for every worker.",
        Mode::IN_SERVERS, Mode::GRADIENT, Mode::BY_ITSELF, Mode::AT_ONCE, Mode::COMPENSATED, true},
    {"local_sgd",
        "A worker makes `local_steps` steps by itself, with an optimizer of its own. Then the "
        "servers take the mean of all workers' values, or go on from it by `outer`, and all begin "
        "anew from there. An epoch ends with such a mean.",
        Mode::IN_SERVERS, Mode::DIFFERENCE, Mode::WITH_ALL, Mode::ROUND, Mode::AS_IT_IS, true},
    {"allreduce",
        "`dist_sync` without servers: every worker holds a share of the parameters, sums its "
        "pieces of all gradients in rank order, updates them, and sends them to all. The same bits "
        "as `dist_sync`.",
        Mode::IN_EVERY_WORKER, Mode::GRADIENT, Mode::WITH_ALL, Mode::ROUND, Mode::AS_IT_IS, true},
};

// The first is the default.
constexpr AggregateFrom AGGREGATE_FROM[] = {
    {"distinct", "Different workers: the first that push in the round.", Rounds::FIRST},
    {"any",
        "Whoever pushes: where there are fewer workers, one pushes more than once for a round. "
        "The rule of TensorFlow's SyncReplicasOptimizer.",
        Rounds::ANY},
};

// The first is the default.
constexpr UpdatePlace PLACES[] = {
    {"server", "Who sums a piece updates it too, and answers with its new values.", false},
    {"worker",
        "Every worker updates all parameters, each with the whole state of the optimizer, by the "
        "sum that the server hands on. The same bits; where a round takes a push of every worker.",
        true},
};

// Whether to read a key that only some modes have, `where` among them: not where it is absent and
// says nothing, so that it is not told either.
bool hasOwn(configs::Reader& reader, kj::StringPtr key, const KvStoreConfig& config, bool fits,
    kj::StringPtr where) {
  if (fits || reader.isManual()) return true;
  if (!reader.has(key)) return false;
  reader.error(key, kj::str("mode `", config.mode->name, "` has no `", key, "`"),
      kj::str("leave it out, or choose mode = \"", where, "\""), {"mode"_kj});
  return true;
}

CompensationConfig readCompensation(configs::Reader& reader) {
  CompensationConfig config;
  config.adaptive = reader.flag("adaptive",
      "Whether `lambda` is divided by the root of a moving mean of each gradient's square (the "
      "paper's DC-ASGD-a), or constant (DC-ASGD-c).",
      false);
  config.lambda = reader.real("lambda",
      "How much of the change is corrected for. The paper has 0.04 for CIFAR-10, and 2 if "
      "`adaptive`.",
      {.atLeast = 0}, config.adaptive ? 2 : 0.04);
  return config;
}

double readOuterRate(configs::Reader& reader, double paper) {
  return reader.real(
      "learning_rate", "Of the mean difference that is taken over.", {.above = 0}, paper);
}

OuterConfig readAverage(configs::Reader&) {
  return {OuterConfig::AVERAGE, 1, 0.0};
}

OuterConfig readBlockMomentum(configs::Reader& reader) {
  double rate = readOuterRate(reader, 1);
  auto momentum = reader.maybeReal("momentum",
      "Of the values' last change that goes on. Absent: the paper's 1 - 1 / workers.",
      {.atLeast = 0, .below = 1});
  return {OuterConfig::BLOCK_MOMENTUM, rate, momentum};
}

OuterConfig readNesterov(configs::Reader& reader) {
  double rate = readOuterRate(reader, 0.7);
  auto momentum = reader.real(
      "momentum", "Of former mean differences that goes on.", {.atLeast = 0, .below = 1}, 0.9);
  return {OuterConfig::NESTEROV, rate, momentum};
}

constexpr configs::Kind<OuterConfig> OUTERS[] = {
    {"average", "The mean itself (local SGD: Stich 2018, arXiv 1805.09767).", readAverage},
    {"block_momentum",
        "With momentum on the change of the mean (BMUF: Chen and Huo 2016): v ← momentum · v + "
        "learning_rate · (mean - values); values ← values + v.",
        readBlockMomentum},
    {"nesterov",
        "SGD with Nesterov's momentum, whose gradient is values - mean (DiLoCo: Douillard et al. "
        "2023, arXiv 2311.08105).",
        readNesterov},
};

void readLocalSteps(configs::Reader& reader, KvStoreConfig& config) {
  bool local = config.mode->sends == Mode::DIFFERENCE;
  if (hasOwn(reader, "local_steps", config, local, "local_sgd")) {
    config.localSteps = uint(reader.integer("local_steps",
        "Of `local_sgd`: steps that a worker makes between two means. Fewer where an epoch ends.",
        {.atLeast = 1, .atMost = 1 << 20}, 16));
  }
  if (hasOwn(reader, "outer", config, local, "local_sgd")) {
    config.outer = reader.kind("outer",
        "Of `local_sgd`: what the servers do with the mean of all workers' values.",
        kj::arrayPtr(OUTERS, kj::size(OUTERS)), "average");
  }
}

}  // namespace

constinit const kj::ArrayPtr<const Mode> MODES(ROWS);
constinit const kj::ArrayPtr<const UpdatePlace> UPDATE_PLACES(PLACES);

Rounds KvStoreConfig::rounds(uint workers) const {
  Rounds rounds{.mode = mode->name, .workers = workers, .aggregate = workers, .codec = codec};
  rounds.codec.answersSums = updatesInWorkers();
  bool bounded = mode->answers == Mode::BOUND;
  if (mode->counts == Mode::WITH_ALL || (bounded && staleness == 0)) {
    KJ_IF_MAYBE(n, aggregate) {
      rounds.aggregate = *n;
      // All of them, each once, is what a round is anyway.
      if (aggregateFrom->counted == Rounds::ANY || *n < workers) {
        rounds.counted = aggregateFrom->counted;
      }
    }
  } else {
    rounds.counted = Rounds::EACH;
    rounds.aggregate = 1;
    if (bounded) rounds.staleness = staleness;
    rounds.keepsSeen = mode->applied == Mode::COMPENSATED;
  }
  return rounds;
}

void KvStoreConfig::check(configs::Reader& reader, uint workers) const {
  KJ_IF_MAYBE(n, aggregate) {
    if (*n > workers && aggregateFrom->counted == Rounds::FIRST) {
      reader.error("kvstore.aggregate",
          kj::str("a round of ", *n, " different workers waits for ever where there are ", workers),
          "make cluster.workers larger, or write aggregate_from = \"any\"",
          {"kvstore.aggregate_from"_kj, "cluster.workers"_kj});
    }
    if (updatesInWorkers() && rounds(workers).counted != Rounds::ALL) {
      reader.error("kvstore.update",
          "workers that update by themselves need every round's sum, and one push of each in it",
          "leave `aggregate` out, or write update = \"server\"", {"kvstore.aggregate"_kj});
    }
  }
}

KvStoreConfig KvStoreConfig::read(configs::Reader& reader) {
  KvStoreConfig config{};
  config.mode =
      &reader.choose("mode", "When gradients are applied and who waits for whom.", MODES, "local");
  auto& mode = *config.mode;
  if (hasOwn(reader, "staleness", config, mode.answers == Mode::BOUND, "dist_ssp")) {
    config.staleness = reader.integer("staleness",
        "Of `dist_ssp`: steps that a worker may be ahead of the slowest. A worker that has ended "
        "its epoch keeps nobody waiting.",
        {.atLeast = 0, .atMost = 1 << 20}, 3);
  }
  bool together = mode.shards != Mode::IN_WORKER && mode.counts == Mode::WITH_ALL &&
                  mode.sends == Mode::GRADIENT;
  bool mayCount = together && mode.hasServers();
  if (hasOwn(reader, "aggregate", config, mayCount, "dist_sync")) {
    auto aggregate = reader.maybeInteger("aggregate",
        "Of `dist_sync`: gradients that make a round. Fewer than there are workers leave the "
        "slowest behind: what they push for a round that is over is dropped, and counted in the "
        "log. Absent: one of every worker.",
        {.atLeast = 1, .atMost = 4096});
    KJ_IF_MAYBE(n, aggregate) config.aggregate = uint(*n);
  }
  config.aggregateFrom = AGGREGATE_FROM;
  bool lacksCount = mayCount && config.aggregate == nullptr && reader.has("aggregate_from");
  if (lacksCount) {
    reader.error("aggregate_from", "`aggregate_from` needs `aggregate`",
        "add `aggregate = …`, how many gradients make a round, or leave `aggregate_from` out",
        {"mode"_kj, "aggregate"_kj});
  }
  bool isOwn = lacksCount || config.aggregate != nullptr;
  if (hasOwn(reader, "aggregate_from", config, isOwn, "dist_sync")) {
    config.aggregateFrom = &reader.choose("aggregate_from", "Whose gradients `aggregate` counts.",
        kj::arrayPtr(AGGREGATE_FROM, kj::size(AGGREGATE_FROM)), "distinct");
  }
  readLocalSteps(reader, config);
  config.update = UPDATE_PLACES.begin();
  if (hasOwn(reader, "update", config, together, "dist_sync")) {
    config.update =
        &reader.choose("update", "Where parameters are updated.", UPDATE_PLACES, "server");
  }
  if (hasOwn(reader, "staleness_aware", config, mode.counts == Mode::BY_ITSELF, "dist_async")) {
    config.stalenessAware = reader.flag("staleness_aware",
        "Where every push is an update: divides the learning rate by the number of updates between "
        "the values that a gradient was computed on and those that it changes, if that is 2 or "
        "more (Zhang et al. 2016, arXiv 1511.05950).",
        false);
  }
  if (hasOwn(reader, "compensation", config, mode.applied == Mode::COMPENSATED, "dc_asgd")) {
    config.compensation = reader.section("compensation",
        "Of `dc_asgd`: how a gradient is corrected (Zheng et al. 2017, arXiv 1609.08326).",
        readCompensation);
  }
  bool travels = mode.shards != Mode::IN_WORKER;
  if (hasOwn(reader, "compression", config, travels, "dist_sync")) {
    config.codec = codec::Codec::read(reader);
  }
  if (hasOwn(reader, "wire", config, travels, "dist_sync")) {
    config.codec.wire = codec::readWire(reader);
  }
  auto sliceBytes = reader.integer("slice_bytes",
      "The largest piece of a parameter array that travels and is updated as one. Small models are "
      "cut finer, so that every server gets a fair share. On links of 1 Gbit/s and less 32768 lets "
      "what the next step needs first overtake sooner.",
      {.atLeast = 4096, .atMost = 256 << 20}, 1 << 20);
  config.slice_bytes = uint64_t(sliceBytes);
  config.placement = &reader.choose(
      "placement", "How the pieces are dealt to the servers.", PLACEMENTS, "balanced");
  config.transport = TRANSPORTS.begin();
  if (hasOwn(reader, "transport", config, mode.shards != Mode::IN_WORKER, "dist_sync")) {
    config.transport = &reader.choose(
        "transport", "How workers reach servers. Never changes a result.", TRANSPORTS, "auto");
  }
  return config;
}

}  // namespace rpc
