#include <kj/debug.h>

#include "rpc/shard/shard.h"
#include "rpc/store/kv_store.h"

namespace rpc {

namespace {

// Each push fills a round, so its answer is in `parameters` when push() returns.
class LocalStore final: public KvStore {
public:
  LocalStore(const Placement& placement, const Rounds& rounds, Updater& updater,
      kj::ArrayPtr<float> parameters, kj::ArrayPtr<const float> gradients)
      : placement(placement),
        shard(placement, 0, rounds, updater),
        parameters(parameters),
        gradients(gradients) {
    KJ_REQUIRE(placement.shards.size() == 1 && rounds.workers == 1);
    KJ_REQUIRE(parameters.size() == placement.parameters());
    KJ_REQUIRE(gradients.size() == placement.parameters());
  }

  void initialize() override {
    for (SliceId id = 0; id < placement.slices.size(); id++) {
      shard.initialize(id, placement.slices[id].of(parameters.asConst()));
    }
  }

  void push(uint64_t step, uint64_t begin, uint64_t end) override {
    auto range = placement.slicesOf(begin, end);
    for (SliceId id = range.begin; id < range.end; id++) {
      auto& slice = placement.slices[id];
      shard.push(0, id, step, slice.of(gradients));
      fetch(id);
    }
  }

  void await(uint64_t, uint64_t, uint64_t) override {}
  void rest() override {}
  void refresh() override {}

  void visitState(configs::StateVisitor& visitor) override {
    if (shard.isInitialized()) {
      shard.visitState(visitor);
    } else {
      shard.restore(visitor);
    }
  }

  void resume() override {
    for (SliceId id = 0; id < placement.slices.size(); id++) fetch(id);
  }

  uint64_t updates() const override {
    return placement.slices.size() == 0 ? 0 : shard.version(0).orDefault(0);
  }

private:
  void fetch(SliceId id) {
    auto lent = shard.lend(0, id);
    copy(lent.values, placement.slices[id].of(parameters));
  }

  const Placement& placement;
  Shard shard;
  kj::ArrayPtr<float> parameters;
  kj::ArrayPtr<const float> gradients;
};

class NoStore final: public KvStore {
public:
  void initialize() override {}
  void push(uint64_t, uint64_t, uint64_t) override {}
  void await(uint64_t, uint64_t, uint64_t) override {}
  void rest() override {}
  void visitState(configs::StateVisitor&) override {}
  void resume() override {}
  void refresh() override {}
  uint64_t updates() const override { return 0; }
};

}  // namespace

kj::Own<KvStore> newLocalStore(const Placement& placement, const Rounds& rounds, Updater& updater,
    kj::ArrayPtr<float> parameters, kj::ArrayPtr<const float> gradients) {
  return kj::heap<LocalStore>(placement, rounds, updater, parameters, gradients);
}

kj::Own<KvStore> newNoStore() {
  return kj::heap<NoStore>();
}

void KvStore::pushLast(uint64_t, kj::ArrayPtr<const SliceId>) {
  KJ_FAIL_REQUIRE("this store has no servers");
}

}  // namespace rpc
