// tools/bench/kv_model.h: values, gradients and updates of `bench kvstore`, and what must come out.
#pragma once

#include <kj/array.h>

#include "rpc/shard/updater.h"
#include "tools/bench/kv_case.h"

namespace tools {

// The value before any step, and the gradient of worker `rank` in round trips of number `seed`, at
// `index` of the flat array. They repeat every KV_PERIOD floats, so that a replay need not have
// them all; it is prime, so that no shift by a slice goes unseen.
constexpr uint64_t KV_PERIOD = 1021;
float kvFirstValue(uint64_t index);
float kvGradient(uint rank, uint64_t seed, uint64_t index);

// What the servers call: the program's own momentum SGD, or, with sgd = false, a copy of the sum.
class KvUpdater final: public rpc::Updater {
public:
  explicit KvUpdater(bool sgd): sgd(sgd) {}

  uint stateArrays(const rpc::Slice&) const override { return sgd ? 1 : 0; }
  void update(const rpc::Slice& slice, const rpc::Round& round, kj::ArrayPtr<const float> current,
      kj::ArrayPtr<float> next, kj::ArrayPtr<float> state) override;

private:
  bool sgd;
};

// The same, value by value.
class KvReplay {
public:
  explicit KvReplay(const KvCase& kvCase);

  // So many rounds with the gradients of `seed`.
  void advance(uint64_t seed, uint64_t rounds);
  // Throws with the first value that is not what this replay has, to the last bit.
  void compare(kj::ArrayPtr<const float> parameters) const;

private:
  const KvCase kvCase;
  kj::Array<float> values;  // one period, or all there are
  kj::Array<float> momenta;
};

}  // namespace tools
