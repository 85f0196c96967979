// rpc/modes/delay_compensation.h: gradients corrected for what changed since they were computed.
#pragma once

#include <kj/array.h>
#include <kj/memory.h>

#include "rpc/rounds.h"

namespace rpc {

// Of dc_asgd: see DelayCompensation.
struct CompensationConfig {
  double lambda;
  bool adaptive;
};

// Around an updater: DC-ASGD (Zheng et al. 2017, arXiv 1609.08326, algorithms 1 and 2). With g the
// mean gradient that a worker computed on the values `seen`, and w those of now, the updater gets
//   g + λ · g ⊙ g ⊙ (w - seen)
// in place of g; λ is constant, or with `adaptive`, element by element,
//   m ← 0.95 · m + 0.05 · g ⊙ g;  λ / √(m + 1e-7)
// The server keeps `seen` for every worker, which MXNet's optimizer `dcasgd` does not: that has one
// for all of them.
//
// For the shards of one thread: it keeps a scratch array between updates.
class DelayCompensation final: public Updater {
public:
  // `imagesPerPush`: what a push's sum is divided by to be a mean.
  DelayCompensation(kj::Own<Updater> updater, CompensationConfig config, uint64_t imagesPerPush)
      : updater(kj::mv(updater)), config(config), imagesPerPush(imagesPerPush) {}

  // One more than the updater's, if it is adaptive.
  uint stateArrays(const Slice& slice) const override;
  void update(const Slice& slice, const Round& round, kj::ArrayPtr<const float> current,
      kj::ArrayPtr<float> next, kj::ArrayPtr<float> state) override;

private:
  kj::Own<Updater> updater;
  const CompensationConfig config;
  const float imagesPerPush;
  kj::Array<float> corrected;  // of the largest slice so far
};

}  // namespace rpc
