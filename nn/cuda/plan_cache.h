// nn/cuda/plan_cache.h: which plan was the fastest, measured once and kept from run to run.
#pragma once

#include <kj/filesystem.h>
#include <kj/map.h>

#include "nn/cuda/library_plan.h"

namespace nn::cuda {

// A convolution in words that say all of it, in one line:
// "forward bf16 128 64x32x32 to 96x16x16, 3x3 stride 2 pad 1".
kj::String textOf(const ConvolutionProblem& shape, Direction direction);

// Names of plans by what they are for, in the file cuda_plans.txt of a folder. Several processes
// may use it at once: one that measured what another has just measured only worked in vain. A file
// that cannot be read is none, and one that cannot be written is not kept; both with a warning.
class PlanCache {
public:
  explicit PlanCache(kj::Own<const kj::Directory> folder);

  // A name that was remembered for `key`, valid until the next remember().
  kj::Maybe<kj::StringPtr> find(kj::StringPtr key) const;
  // Both in one line without tabs.
  void remember(kj::StringPtr key, kj::StringPtr name);

private:
  void put(kj::String key, kj::String name);
  void read();
  void write() const;

  kj::Own<const kj::Directory> folder;
  kj::TreeMap<kj::String, kj::String> names;
};

// Seconds that a plan takes; null if it cannot be run.
using Measure = kj::FunctionParam<kj::Maybe<double>(LibraryPlan&)>;

// The plan that is fastest; of equals the first. Null if none can be run.
kj::Maybe<kj::Own<LibraryPlan>> fastest(kj::Array<kj::Own<LibraryPlan>> plans, Measure measure);

}  // namespace nn::cuda
