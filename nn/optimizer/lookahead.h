// nn/optimizer/lookahead.h: draws the trained values back to slow values every few updates.
#pragma once

#include <kj/array.h>

#include "configs/language/reader.h"
#include "nn/optimizer/schedule.h"

namespace nn {

// Zhang et al. 2019 (arXiv 1907.08610), algorithm 1. With t the number of updates done and T that
// of the run, whenever t is a multiple of `every`:
//   share = decay · (t / T)^power;  slow ← slow + (1 - share) · (w - slow);  w ← slow
// After the last update w ← slow, so the run ends on the slow values. The slow values begin as the
// initial values. The paper's alpha is 1 - decay, its power 0. The schedule of airbench94 is every
// = 5, decay = 0.95^5, power = 3.
//
// Works element by element in float32 and rounds every operation. So the bits are the same on
// pieces of an array and on every instruction set. Immutable; any thread.
class Lookahead {
public:
  // Whether values change after update number `update` (from 0).
  bool isDueAfter(uint64_t update, const RunLength& run) const;
  // Returns the share of (w - slow) that is added to the slow values, which may be 0. Null if the
  // values do not change.
  kj::Maybe<float> stepAfter(uint64_t update, const RunLength& run) const;

  // Draws `values` back, and updates `slow`, if that is due after update number `update`, which has
  // produced the values. Otherwise changes nothing. Throws if the lengths differ.
  void apply(uint64_t update, const RunLength& run, kj::ArrayPtr<float> values,
      kj::ArrayPtr<float> slow) const;

  // Returns the lookahead for values that a worker keeps itself. A step of the worker stands for
  // `updates` updates, and the result counts these steps. So its `every` is every / updates,
  // rounded down, at least one.
  Lookahead inStepsOf(uint64_t updates) const;

  // Reports a run that would end on its initial values.
  void check(const RunLength& run, configs::Diagnostics& diagnostics) const;

  // [train.lookahead]
  static Lookahead read(configs::Reader& reader);

private:
  uint64_t every;
  double decay;
  double power;
  configs::Span everySpan;
};

}  // namespace nn
