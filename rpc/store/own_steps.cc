#include "rpc/store/own_steps.h"

#include <kj/debug.h>

#include "rpc/shared_memory/shared_layout.h"
#include "rpc/store/remote_store.h"
#include "rpc/store/worker_update.h"

namespace rpc {

namespace {

// Makes the array of differences to push. It has one float per parameter.
kj::Array<float> arrayFor(const Placement& placement, kj::Maybe<SharedMemory&> memory) {
  KJ_IF_MAYBE(shared, memory) {
    auto lies = WorkerLayout(placement).gradients(shared->bytes());
    return kj::Array<float>(lies.begin(), lies.size(), kj::NullArrayDisposer::instance);
  }
  return kj::heapArray<float>(placement.parameters());
}

class OwnStepsStore final: public KvStore {
public:
  OwnStepsStore(const Placement& placement, const Rounds& rounds, uint rank, OwnSteps ownSteps,
      Updater& updater, kj::ArrayPtr<float> parameters, kj::ArrayPtr<const float> gradients,
      kj::Maybe<SharedMemory&> memory)
      : placement(placement),
        ownSteps(ownSteps),
        parameters(parameters),
        gradients(gradients),
        begun(kj::heapArray<float>(parameters.size())),
        differences(arrayFor(placement, memory)),
        ownUpdates(placement, updater, parameters),
        blocks(kj::heapArray<uint64_t>(placement.slices.size())),
        store(RemoteStore::create(placement, rounds, rank, begun, differences, memory)) {
    KJ_REQUIRE(ownSteps.steps > 0);
    KJ_REQUIRE(rounds.counted == Rounds::ALL || ownSteps.drawn != nullptr, rounds);
    if (ownSteps.drawn != nullptr) {
      own = kj::heapArray<float>(parameters.size());
      // Set to zeros, because checkpoints contain the array before it is used.
      for (auto& value: own) value = 0;
    }
    KJ_REQUIRE(gradients.size() == parameters.size());
    for (auto& block: blocks) block = 0;
  }

  kj::Maybe<RemoteStore&> remote() override { return *store; }

  void initialize() override {
    copy(parameters, begun);
    store->initialize();
    copy(begun, parameters);
  }

  void push(uint64_t step, uint64_t begin, uint64_t end) override {
    enter(step);
    auto slices = placement.slicesOf(begin, end);
    for (SliceId id = slices.begin; id < slices.end; id++) {
      KJ_REQUIRE(
          blocks[id] == block, "a step was pushed before the last block was awaited", id, step);
      ownUpdates.update(id, Round{step, placement.slices[id].of(gradients)});
    }
    steps = step + 1;
    if (steps - blockBegin == ownSteps.steps) pushDifferences(slices);
  }

  void await(uint64_t step, uint64_t begin, uint64_t end) override {
    enter(step);
    if (isRefreshed) {
      copy(own, parameters);
      isRefreshed = false;
    }
    auto slices = placement.slicesOf(begin, end);
    for (SliceId id = slices.begin; id < slices.end; id++) fetch(id);
  }

  void rest() override {
    uint64_t open = steps - blockBegin;
    if (open == 0) return;
    SliceRange all{0, SliceId(placement.slices.size())};
    if (open < ownSteps.steps) pushDifferences(all);
    closeBlock();
    for (SliceId id = all.begin; id < all.end; id++) fetch(id);
    store->rest();
  }

  void settle() override {
    // This is what the next step would do first.
    if (steps - blockBegin != ownSteps.steps) return;
    closeBlock();
    for (SliceId id = 0; id < placement.slices.size(); id++) fetch(id);
  }

  void visitState(configs::StateVisitor& visitor) override {
    visitor.floats("store.parameters", parameters);
    visitor.floats("store.own", own);
    ownUpdates.visitState(visitor);
    visitor.count("store.refreshed", isRefreshed);
    visitor.count("store.own_steps", steps);
    visitor.count("store.block", block);
    visitor.count("store.block_begin", blockBegin);
    for (auto& each: blocks) each = block;
    store->visitState(visitor);
  }

  void resume() override { store->resume(); }

  // Fetches exact values, because answers may have come as halves.
  void refresh() override {
    store->refresh();
    if (ownSteps.drawn != nullptr && !isRefreshed) {
      copy(parameters, own);
      isRefreshed = true;
    }
    copy(begun, parameters);
  }

  uint64_t updates() const override { return steps; }

private:
  // Begins the next block if `step` is its first step.
  void enter(uint64_t step) {
    if (step - blockBegin == ownSteps.steps) closeBlock();
  }

  void closeBlock() {
    block++;
    blockBegin = steps;
  }

  void pushDifferences(SliceRange slices) {
    if (slices.begin == slices.end) return;
    for (SliceId id = slices.begin; id < slices.end; id++) {
      auto& slice = placement.slices[id];
      auto before = slice.of(begun.asPtr()), now = slice.of(parameters);
      auto difference = slice.of(differences.asPtr());
      for (auto i: kj::indices(difference)) difference[i] = before[i] - now[i];
    }
    auto& last = placement.slices[slices.end - 1];
    store->push(block, placement.slices[slices.begin].offset, last.offset + last.size);
  }

  // Sets slice `id` to the values with which it begins this block.
  void fetch(SliceId id) {
    if (blocks[id] == block) return;
    auto& slice = placement.slices[id];
    store->await(block, slice.offset, slice.offset + slice.size);
    auto answered = slice.of(begun.asPtr().asConst());
    auto values = slice.of(parameters);
    KJ_IF_MAYBE(drawn, ownSteps.drawn) {
      for (auto i: kj::indices(values)) values[i] += *drawn * (answered[i] - values[i]);
    } else {
      copy(answered, values);
    }
    blocks[id] = block;
  }

  const Placement& placement;
  const OwnSteps ownSteps;
  kj::ArrayPtr<float> parameters;
  kj::ArrayPtr<const float> gradients;
  kj::Array<float> begun;        // the values with which the block began; the shards' answers
  kj::Array<float> differences;  // of the last block that was pushed
  WorkerUpdate ownUpdates;
  kj::Array<float> own;  // the worker's values, after refresh() replaced them in `parameters`
  bool isRefreshed = false;
  uint64_t steps = 0;          // how many were pushed
  uint64_t block = 0;          // the block of the newest step that was pushed or awaited
  uint64_t blockBegin = 0;     // its first step
  kj::Array<uint64_t> blocks;  // per slice: the block that it began last
  kj::Own<RemoteStore> store;
};

}  // namespace

kj::Own<KvStore> newOwnStepsStore(const Placement& placement, const Rounds& rounds, uint rank,
    OwnSteps ownSteps, Updater& updater, kj::ArrayPtr<float> parameters,
    kj::ArrayPtr<const float> gradients, kj::Maybe<SharedMemory&> memory) {
  return kj::heap<OwnStepsStore>(
      placement, rounds, rank, ownSteps, updater, parameters, gradients, memory);
}

}  // namespace rpc
