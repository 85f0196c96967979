// runner/experiment/expectations.h: the section [expect]: what a run must reach.
#pragma once

#include <kj/array.h>
#include <kj/string.h>

#include "configs/language/reader.h"
#include "runner/experiment/published.h"

namespace runner {

using kj::uint;

// A figure of an epoch that can have expectations.
struct ExpectedFigure {
  const char* name;
  const char* doc;
  enum Kind {
    VALIDATION_ACCURACY,
    VALIDATION_TOP_K_ACCURACY,
    TRAIN_ACCURACY,
    VALIDATION_LOSS,
    TRAIN_LOSS
  } kind;
  double atMost = kj::inf();  // no run can exceed this

  bool isOfValidation() const { return kind != TRAIN_ACCURACY && kind != TRAIN_LOSS; }
};

// The bounds of one figure in one epoch. Null: no such bound.
struct Expectation {
  const ExpectedFigure* figure;
  kj::Maybe<uint> epoch;  // from 1; null: the last epoch
  kj::Maybe<double> atLeast;
  kj::Maybe<double> atMost;
  // largest distance to the same figure of a sweep's first run
  kj::Maybe<double> withinOfFirstRun;
  kj::Maybe<double> withinOfFirstEpoch;  // largest distance to the figure of epoch 1
};

// Reads [expect].
kj::Array<Expectation> readExpectations(configs::Reader& reader);

// Returns one sentence for each expectation that a run of `epochs` epochs is certain to miss. Adds
// one if all rows of `published` are about later epochs, so that nothing can be compared.
// `validates` says whether the run has records to validate on.
kj::Array<kj::String> neverReached(kj::ArrayPtr<const Expectation> expectations,
    const kj::Maybe<Published>& published, uint epochs, bool validates);

}  // namespace runner
