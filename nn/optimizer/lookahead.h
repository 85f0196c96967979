// nn/optimizer/lookahead.h: slow values that the trained ones are drawn back to every few updates.
#pragma once

#include <kj/array.h>

#include "configs/language/reader.h"
#include "nn/optimizer/schedule.h"

namespace nn {

// Zhang et al. 2019 (arXiv 1907.08610), algorithm 1. With t the number of updates done and T that
// of the run, whenever t is a multiple of `every`:
//   share = decay · (t / T)^power;  slow ← slow + (1 - share) · (w - slow);  w ← slow
// and after the last update w ← slow: the run ends on the slow values. They begin as the first
// values. The paper's alpha is 1 - decay, its power 0; airbench94's schedule is every = 5, decay =
// 0.95^5, power = 3.
//
// Element by element in float32, every operation rounded: the same on pieces of an array and on
// every instruction set. Immutable; any thread.
class Lookahead {
public:
  // Whether values change after update number `update` (from 0).
  bool isDueAfter(uint64_t update, const RunLength& run) const;
  // If they do: what of (w - slow) goes to the slow values, 0 for nothing at all.
  kj::Maybe<float> stepAfter(uint64_t update, const RunLength& run) const;

  // After update number `update`, which left `values`; `slow` are those of before, both of the same
  // length. Changes nothing if it is not due.
  void apply(uint64_t update, const RunLength& run, kj::ArrayPtr<float> values,
      kj::ArrayPtr<float> slow) const;

  // The same for values of a worker's own, which follow its steps, of `updates` updates each:
  // `every` is every / updates steps there, rounded down, at least one.
  Lookahead inStepsOf(uint64_t updates) const;

  // Reports a run that would end on its first values.
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
