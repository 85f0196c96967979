// tools/bench/kv_model.h: the values, gradients and updates of `bench kvstore`, and the right
// results.
#pragma once

#include <kj/array.h>

#include "rpc/rounds.h"
#include "tools/bench/kv_case.h"

namespace tools {

// Values and gradients repeat every KV_PERIOD floats, so that a replay needs only one period. The
// period is prime, so that a shift by a slice is noticed.
constexpr uint64_t KV_PERIOD = 1021;

// Return the value before any step, and the gradient of worker `rank` in round trips with `seed`,
// at `index` of the flat array.
float kvFirstValue(uint64_t index);
float kvGradient(uint rank, uint64_t seed, uint64_t index);

// The servers' updater: the program's own momentum SGD, or, with sgd = false, a copy of the sum.
class KvUpdater final: public rpc::Updater {
public:
  explicit KvUpdater(bool sgd): sgd(sgd) {}

  uint stateArrays(const rpc::Slice&) const override { return sgd ? 1 : 0; }
  void update(const rpc::Slice& slice, const rpc::Round& round, kj::ArrayPtr<const float> current,
      kj::ArrayPtr<float> next, kj::ArrayPtr<float> state) override;

private:
  bool sgd;
};

// Computes the values that the store must end with, one by one, without a store.
class KvReplay {
public:
  explicit KvReplay(const KvCase& kvCase);

  // Computes `rounds` rounds with the gradients of `seed`.
  void advance(uint64_t seed, uint64_t rounds);
  // Throws at the first value that differs from this replay in any bit.
  void compare(kj::ArrayPtr<const float> parameters) const;

private:
  const KvCase kvCase;
  kj::Array<float> values;  // one period, or all if there are fewer
  kj::Array<float> momenta;
};

}  // namespace tools
