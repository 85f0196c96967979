// rpc/modes/delay_compensation.h: corrects gradients for the updates since they were computed.
#pragma once

#include <kj/array.h>
#include <kj/memory.h>

#include "rpc/rounds.h"

namespace rpc {

// The keys of dc_asgd: see DelayCompensation.
struct CompensationConfig {
  double lambda;
  bool adaptive;
};

// Adds DC-ASGD to an updater (Zheng et al. 2017, arXiv 1609.08326, algorithms 1 and 2). Let g be
// the mean gradient that a worker computed on the values `seen`, and w the current values. Instead
// of g, the updater gets
//   g + λ · g ⊙ g ⊙ (w - seen)
// λ is constant. With `adaptive`, each element has its own mean square m and its own λ:
//   m ← 0.95 · m + 0.05 · g ⊙ g;  λ / √(m + 1e-7)
// The server keeps `seen` for each worker. MXNet's optimizer `dcasgd` keeps only one for all
// workers.
//
// For the shards of one thread, because it keeps a scratch array between updates.
class DelayCompensation final: public Updater {
public:
  // The sum of one push divided by `imagesPerPush` is a mean.
  DelayCompensation(kj::Own<Updater> updater, CompensationConfig config, uint64_t imagesPerPush)
      : updater(kj::mv(updater)), config(config), imagesPerPush(imagesPerPush) {}

  // Returns one array more than `updater` needs if the compensation is adaptive.
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
