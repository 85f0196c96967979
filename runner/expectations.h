// runner/expectations.h: what a run must reach, [expect], and whether it did.
#pragma once

#include <kj/array.h>
#include <kj/string.h>

#include "configs/language/reader.h"
#include "runner/run_record.h"

namespace runner {

// A figure of an epoch that something can be expected of.
struct ExpectedFigure {
  const char* name;
  const char* doc;
  // Null where the run did not find it.
  kj::Maybe<double> (*of)(const EpochRecord& epoch);
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

// One bound of one expectation, judged.
struct Verdict {
  bool met;
  // "validation_accuracy of epoch 10 is 0.7912, expected at least 0.82".
  kj::String sentence;
};

// Judges a run that has ended, bound by bound. `first` is the first run of its sweep. What is
// expected of the distance to it is not judged where there is none, nor of `first` itself, the run
// with the same folder, and is missed where that has not finished. A figure that the run does not
// have is missed.
kj::Array<Verdict> judge(kj::ArrayPtr<const Expectation> expectations, const RunRecord& run,
    kj::Maybe<const RunRecord&> first = nullptr);

}  // namespace runner
