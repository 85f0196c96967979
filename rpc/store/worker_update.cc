#include "rpc/store/worker_update.h"

#include <kj/debug.h>

#include <cstring>

#include "rpc/store/remote_store.h"

namespace rpc {

namespace {

class WorkerUpdateStore final: public KvStore {
public:
  WorkerUpdateStore(const Placement& placement, const Rounds& rounds, uint rank, Updater& updater,
      kj::ArrayPtr<float> parameters, kj::ArrayPtr<const float> gradients,
      kj::Maybe<SharedMemory&> memory)
      : placement(placement),
        divisor(rounds.divisor(rounds.workers)),
        parameters(parameters),
        sums(kj::heapArray<float>(parameters.size())),
        own(placement, updater, parameters),
        updated(kj::heapArray<uint64_t>(placement.slices.size())),
        store(RemoteStore::create(placement, rounds, rank, sums, gradients, memory)) {
    KJ_REQUIRE(rounds.counted == Rounds::ALL, "a worker would miss updates", rounds);
    for (auto& count: updated) count = 0;
  }

  kj::Maybe<RemoteStore&> remote() override { return *store; }

  void initialize() override {
    copy(parameters, sums);
    store->initialize();
    copy(sums, parameters);
  }

  void push(uint64_t step, uint64_t begin, uint64_t end) override {
    auto slices = placement.slicesOf(begin, end);
    for (SliceId id = slices.begin; id < slices.end; id++) {
      // The answer replaces the last sum.
      KJ_REQUIRE(
          updated[id] == step, "a step was pushed before the last step was awaited", id, step);
    }
    pushed = kj::max(pushed, step + 1);
    store->push(step, begin, end);
  }

  void await(uint64_t step, uint64_t begin, uint64_t end) override {
    auto slices = placement.slicesOf(begin, end);
    for (SliceId id = slices.begin; id < slices.end; id++) update(id, step);
  }

  void rest() override {
    for (SliceId id = 0; id < placement.slices.size(); id++) update(id, pushed);
    store->rest();
  }

  void visitState(configs::StateVisitor& visitor) override {
    // The shards have only sums.
    visitor.floats("store.parameters", parameters);
    own.visitState(visitor);
    visitor.count("store.pushed", pushed);
    for (auto& count: updated) count = pushed;
    store->visitState(visitor);
  }

  void resume() override { store->resume(); }
  void refresh() override {}

  uint64_t updates() const override { return updated.size() == 0 ? 0 : updated[0]; }

private:
  // Updates slice `id` until it has had `count` updates.
  void update(SliceId id, uint64_t until) {
    if (updated[id] >= until) return;
    auto& slice = placement.slices[id];
    store->await(until, slice.offset, slice.offset + slice.size);
    own.update(id, Round{updated[id], slice.of(sums.asPtr().asConst()), divisor});
    updated[id]++;
  }

  const Placement& placement;
  const uint divisor;
  kj::ArrayPtr<float> parameters;
  kj::Array<float> sums;  // the answers of the shards
  WorkerUpdate own;
  kj::Array<uint64_t> updated;  // per slice: updates
  uint64_t pushed = 0;          // steps
  kj::Own<RemoteStore> store;
};

}  // namespace

WorkerUpdate::WorkerUpdate(
    const Placement& placement, Updater& updater, kj::ArrayPtr<float> parameters)
    : placement(placement), updater(updater), parameters(parameters) {
  KJ_REQUIRE(parameters.size() == placement.parameters());
  uint64_t largest = 0;
  states = KJ_MAP(slice, placement.slices) {
    largest = kj::max(largest, slice.size);
    auto state = kj::heapArray<float>(slice.size * updater.stateArrays(slice));
    memset(state.begin(), 0, state.asBytes().size());
    return state;
  };
  next = kj::heapArray<float>(largest);
}

void WorkerUpdate::update(SliceId id, const Round& round) {
  auto& slice = placement.slices[id];
  auto values = slice.of(parameters);
  auto updated = next.slice(0, slice.size);
  updater.update(slice, round, values, updated, states[id]);
  copy(updated, values);
}

void WorkerUpdate::visitState(configs::StateVisitor& visitor) {
  auto pieces = KJ_MAP(state, states) {
    return state.asPtr();
  };
  visitor.floats("store.optimizer", pieces);
}

void SumUpdater::update(const Slice&, const Round& round, kj::ArrayPtr<const float>,
    kj::ArrayPtr<float> next, kj::ArrayPtr<float>) {
  copy(round.gradientSum, next);
}

kj::Own<KvStore> newWorkerUpdateStore(const Placement& placement, const Rounds& rounds, uint rank,
    Updater& updater, kj::ArrayPtr<float> parameters, kj::ArrayPtr<const float> gradients,
    kj::Maybe<SharedMemory&> memory) {
  return kj::heap<WorkerUpdateStore>(
      placement, rounds, rank, updater, parameters, gradients, memory);
}

}  // namespace rpc
