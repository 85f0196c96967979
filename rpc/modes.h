// rpc/modes.h: the closed table of kvstore modes, and [kvstore].
#pragma once

#include <kj/array.h>
#include <kj/string.h>

#include "configs/language/document.h"
#include "rpc/placement.h"
#include "rpc/rounds.h"
#include "rpc/transport.h"

namespace configs {
class Reader;
}

namespace rpc {

// A row: what a mode is. docs/modes has a page for each.
struct Mode {
  const char* name;  // local, device, dist_sync, …
  const char* doc;
  // Where the shards are: one in the only worker, which calls it directly; in server processes; one
  // in every worker.
  enum Shards { IN_WORKER, IN_SERVERS, IN_EVERY_WORKER } shards;
  // What a worker pushes: the gradient of each step; after several steps of its own, by how much
  // they changed its values.
  enum Sends { GRADIENT, DIFFERENCE } sends;
  // When a push counts: together with one of every other worker, or by itself.
  enum Counts { WITH_ALL, BY_ITSELF } counts;
  // When it is answered: when its round is applied; at once; when the slowest worker is near
  // enough.
  enum Answers { ROUND, AT_ONCE, BOUND } answers;
  // What an update does with its sum: hands it to the optimizer; adds first what it would have been
  // on the values of now.
  enum Applied { AS_IT_IS, COMPENSATED } applied;
  // Whether a worker may have several devices, whose gradients it adds in their order before a
  // push.
  bool severalDevices;

  bool hasServers() const { return shards == IN_SERVERS; }
};
extern const kj::ArrayPtr<const Mode> MODES;

// A row of the table of `aggregate_from`.
struct AggregateFrom {
  const char* name;  // distinct, any
  const char* doc;
  Rounds::Counted counted;
};

// A row of the table of `update`.
struct UpdatePlace {
  const char* name;  // server, worker
  const char* doc;
  bool inWorker;
};
extern const kj::ArrayPtr<const UpdatePlace> UPDATE_PLACES;

// What the servers of local_sgd do with the mean difference of a round.
struct OuterConfig {
  enum Rule { AVERAGE, BLOCK_MOMENTUM, NESTEROV } rule;
  double learningRate;
  kj::Maybe<double> momentum;  // null: 1 - 1 / workers

  double momentumOf(uint workers) const { return momentum.orDefault(1 - 1.0 / workers); }
};

// Delay compensation of dc_asgd; see rpc/shard/delay_compensation.h.
struct CompensationConfig {
  double lambda;
  bool adaptive;
};

// [kvstore]
struct KvStoreConfig {
  const Mode* mode;
  kj::Maybe<uint> aggregate;  // null: all workers
  const AggregateFrom* aggregateFrom;
  uint64_t staleness;  // dist_ssp
  bool stalenessAware;
  CompensationConfig compensation;  // dc_asgd
  codec::Codec codec;
  const UpdatePlace* update;
  uint localSteps;    // local_sgd
  OuterConfig outer;  // likewise
  uint64_t slice_bytes;
  const PlacementRule* placement;
  const Transport* transport;

  Rounds rounds(uint workers) const;
  // Whether shards hand sums on, for workers to update by.
  bool updatesInWorkers() const { return update != nullptr && update->inWorker; }
  // Whether pushes go through shared memory on one machine: what is encoded travels in messages.
  bool sharesMemory() const {
    return mode->shards != Mode::IN_WORKER && transport->sharesMemory && codec.isPlain();
  }
  // Reports what does not go with so many workers. `reader` is that of the whole file.
  void check(configs::Reader& reader, uint workers) const;

  static KvStoreConfig read(configs::Reader& reader);
};

}  // namespace rpc
