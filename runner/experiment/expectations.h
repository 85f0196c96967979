// runner/experiment/expectations.h: what a run must reach: [expect].
#pragma once

#include <kj/array.h>
#include <kj/string.h>

#include "configs/language/reader.h"

namespace runner {

using kj::uint;

// A figure of an epoch that something can be expected of.
struct ExpectedFigure {
  const char* name;
  const char* doc;
  enum Kind { VALIDATION_ACCURACY, TRAIN_ACCURACY, VALIDATION_LOSS, TRAIN_LOSS } kind;
  double atMost = kj::inf();  // what no run exceeds
};

// What one figure of one epoch must be. Bounds that are null bind nothing.
struct Expectation {
  const ExpectedFigure* figure;
  kj::Maybe<uint> epoch;  // from 1; null: the last
  kj::Maybe<double> atLeast;
  kj::Maybe<double> atMost;
  kj::Maybe<double> withinOfFirstRun;    // distance to the same figure of a sweep's first run
  kj::Maybe<double> withinOfFirstEpoch;  // distance to the figure of epoch 1
};

// [expect]
kj::Array<Expectation> readExpectations(configs::Reader& reader);

}  // namespace runner
