// nn/cuda/plan_cache.h: remembers from run to run which plan was the fastest.
#pragma once

#include <kj/filesystem.h>
#include <kj/map.h>

#include "nn/cuda/library_plan.h"

namespace nn::cuda {

// Returns a text that identifies a convolution, in one line:
// "forward bf16 128 64x32x32 to 96x16x16, 3x3 stride 2 pad 1".
kj::String textOf(const ConvolutionProblem& shape, Direction direction);

// The names of the fastest plans, in the file cuda_plans.txt of a folder. Several processes may use
// it at the same time. At worst, two of them measure the same plan. If the file cannot be read or
// written, the cache warns and works without it.
class PlanCache {
public:
  explicit PlanCache(kj::Own<const kj::Directory> folder);

  // Returns the name that was remembered for `key`, including by other caches of this folder,
  // because the GPUs of a worker must use the same plan. It is valid until the next call.
  kj::Maybe<kj::StringPtr> find(kj::StringPtr key);
  // Remembers that plan `name` is the fastest one for `key`. Neither may contain a tab or a line
  // break.
  void remember(kj::StringPtr key, kj::StringPtr name);

  // Waits until no other cache of this folder holds this lock, and takes it. Hold it while you
  // measure: plans that are measured at the same time slow each other down. Destroying the result
  // gives the lock back. On a file system without locks, this does nothing.
  kj::Own<void> lockForMeasuring() const;

private:
  void put(kj::String key, kj::String name);
  void read();
  void write() const;

  kj::Own<const kj::Directory> folder;
  kj::TreeMap<kj::String, kj::String> names;
  bool wasDamaged = false;  // the file, and the user was warned
};

// Returns the seconds that a plan takes. Null if it cannot be run.
using Measure = kj::FunctionParam<kj::Maybe<double>(LibraryPlan&)>;

// Returns the fastest plan, the first of equals. Null if no plan can be run.
kj::Maybe<kj::Own<LibraryPlan>> fastest(kj::Array<kj::Own<LibraryPlan>> plans, Measure measure);

}  // namespace nn::cuda
