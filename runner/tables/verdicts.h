// runner/tables/verdicts.h: judges whether a run met its [expect].
#pragma once

#include <kj/array.h>
#include <kj/string.h>

#include "runner/experiment/expectations.h"
#include "runner/logs/run_record.h"

namespace runner {

// One bound of one expectation, judged.
struct Verdict {
  bool met;
  // For example "validation_accuracy of epoch 10 is 0.7912, expected at least 0.82".
  kj::String sentence;
};

// Judges a run that has ended, one verdict per bound. `topK` is the log.top_k of the expectations.
// The accuracy for another k is a different figure. `first` is the first run of its sweep. A bound
// on the distance to it is not judged if `first` is null, or for the run itself (the run with the
// same folder). That bound is missed if `first` has not finished. A bound on a figure that the run
// does not have is missed.
kj::Array<Verdict> judge(kj::ArrayPtr<const Expectation> expectations, const RunRecord& run,
    uint topK, kj::Maybe<const RunRecord&> first = nullptr);

}  // namespace runner
