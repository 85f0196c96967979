// runner/sweep/run_errors.h: collects the errors of a sweep's runs, and reports each once.
#pragma once

#include "configs/language/diagnostics.h"
#include "runner/experiment/sweep.h"

namespace runner {

// Collects the errors of runs that are read one by one. Most errors occur in every run.
class RunErrors {
public:
  // `settings` must stay at their address until tell(). They are empty without a sweep.
  void add(kj::ArrayPtr<const Setting> settings, configs::Diagnostics errors);

  // Adds every error to `all` once. An error that only some runs have comes from their settings.
  // The message says how many runs have it, and names the first one, unless the error stands at a
  // setting and all runs with this setting have it. All values of a range have one place: if their
  // errors differ only in numbers, they count as one error. If only one of these values is wrong,
  // a message that says this value needs no runs.
  void tell(kj::ArrayPtr<const kj::String> shortKeys, configs::Diagnostics& all) const;

private:
  struct Run {
    kj::ArrayPtr<const Setting> settings;
    configs::Diagnostics errors;
  };
  kj::Vector<Run> runs;
};

}  // namespace runner
