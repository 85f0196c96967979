// runner/tables/verdicts.h: whether a run reached what its [expect] asks for.
#pragma once

#include <kj/array.h>
#include <kj/string.h>

#include "runner/experiment/expectations.h"
#include "runner/logs/run_record.h"

namespace runner {

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
