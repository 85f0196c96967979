#include "rpc/modes/sync_modes.h"

#include "configs/language/reader.h"
#include "rpc/store/worker_update.h"

namespace rpc {

namespace {

// A row of the table of `aggregate_from`.
struct AggregateFrom {
  const char* name;  // distinct, any
  const char* doc;
  Rounds::Counted counted;
};

// The first is the default.
constexpr AggregateFrom AGGREGATE_FROM[] = {
    {"distinct", "The gradients of different workers: those that push first in the round.",
        Rounds::FIRST},
    {"any",
        "The gradients of any workers. If there are fewer workers than gradients in a round, a "
        "worker pushes more than once per round. This is the rule of TensorFlow's "
        "SyncReplicasOptimizer.",
        Rounds::ANY},
};

// A row of the table of `update`.
struct UpdatePlace {
  const char* name;  // server, worker
  const char* doc;
  bool inWorker;
};

// The first is the default.
constexpr UpdatePlace UPDATE_PLACES[] = {
    {"server", "The server that sums a slice also updates it, and answers with its new values.",
        false},
    {"worker",
        "Every worker updates all parameters with the sum that the server sends, and keeps the "
        "whole state of the optimizer. The parameters have the same bits as with `server`. Every "
        "round must take one push of each worker.",
        true},
};

class SyncMode final: public Mode {
public:
  SyncMode(const ModeRow& row, configs::Reader& reader): Mode(row) {
    if (reader.isManual() || row.has("aggregate")) readAggregate(reader);
    if (reader.isManual() || row.has("update")) {
      updatesInWorkers =
          reader
              .choose("update", "For `dist_sync` and `allreduce`: where parameters are updated.",
                  kj::arrayPtr(UPDATE_PLACES, kj::size(UPDATE_PLACES)), "server")
              .inWorker;
    }
  }

  Rounds rounds(uint workers) const override {
    Rounds rounds{.mode = row.name, .workers = workers, .aggregate = workers};
    rounds.codec.answersSums = updatesInWorkers;
    KJ_IF_MAYBE(n, aggregate) {
      rounds.aggregate = *n;
      // With FIRST, the first `workers` workers are all of them: that is Rounds::ALL.
      if (counted == Rounds::ANY || *n < workers) rounds.counted = counted;
    }
    return rounds;
  }

  kj::Own<KvStore> newStore(WorkerSetup setup) const override {
    if (!updatesInWorkers) return Mode::newStore(setup);
    return newWorkerUpdateStore(setup.placement, setup.rounds, setup.rank, setup.optimizer,
        setup.parameters, setup.gradients, setup.memory);
  }

  kj::Own<Updater> newShardUpdater(kj::Own<Updater> optimizer, uint64_t, uint) const override {
    if (!updatesInWorkers) return optimizer;
    return kj::heap<SumUpdater>();
  }

  kj::Maybe<OwnUpdates> ownUpdates() const override {
    if (!updatesInWorkers) return nullptr;
    return OwnUpdates{"every worker updates all parameters, on its host", "with the sums"};
  }

  void check(configs::Reader& reader, uint workers) const override {
    KJ_IF_MAYBE(n, aggregate) {
      if (*n > workers && counted == Rounds::FIRST) {
        reader.error("kvstore.aggregate",
            kj::str("a round of ", *n,
                " different workers would never be complete: cluster.workers is ", workers),
            "make cluster.workers larger, or write aggregate_from = \"any\"",
            {"kvstore.aggregate_from"_kj, "cluster.workers"_kj});
      }
      if (updatesInWorkers && rounds(workers).counted != Rounds::ALL) {
        reader.error("kvstore.update",
            "`update = \"worker\"` needs rounds that take one push of every worker",
            "leave `aggregate` out, or write update = \"server\"", {"kvstore.aggregate"_kj});
      }
    }
  }

private:
  void readAggregate(configs::Reader& reader) {
    auto n = reader.maybeInteger("aggregate",
        "For `dist_sync`: how many gradients form a round. If there are more workers than that, "
        "the gradients of the slowest workers come too late: they are dropped, and the log counts "
        "them. Default: one gradient from every worker.",
        {.atLeast = 1, .atMost = 4096});
    aggregate = n.map([](int64_t n) { return uint(n); });
    if (aggregate == nullptr && reader.has("aggregate_from")) {
      reader.error("aggregate_from", "`aggregate_from` needs `aggregate`",
          "add `aggregate = N`, the number of gradients per round, or leave `aggregate_from` out",
          {"mode"_kj, "aggregate"_kj});
    }
    if (reader.isManual() || aggregate != nullptr || reader.has("aggregate_from")) {
      counted = reader
                    .choose("aggregate_from", "Whose gradients `aggregate` counts.",
                        kj::arrayPtr(AGGREGATE_FROM, kj::size(AGGREGATE_FROM)), "distinct")
                    .counted;
    }
  }

  kj::Maybe<uint> aggregate;  // null: all workers
  Rounds::Counted counted = Rounds::FIRST;
  bool updatesInWorkers = false;
};

}  // namespace

kj::Own<const Mode> readSyncMode(const ModeRow& row, configs::Reader& reader) {
  return kj::heap<SyncMode>(row, reader);
}

}  // namespace rpc
