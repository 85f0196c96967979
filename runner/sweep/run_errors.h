// runner/sweep/run_errors.h: what is wrong with the runs of a sweep, told once each.
#pragma once

#include "configs/language/diagnostics.h"
#include "runner/experiment/sweep.h"

namespace runner {

// Collects the errors of runs that are read one by one. Most of what is wrong with one run is wrong
// with all of them.
class RunErrors {
public:
  // `settings` must stay where they are until tell(). They are empty without a sweep.
  void add(kj::ArrayPtr<const Setting> settings, configs::Diagnostics errors);

  // Adds every error to `all` once. One that only some runs have comes from their settings: unless
  // it stands at the place of such a setting, the message names the first run that has it.
  void tell(kj::ArrayPtr<const kj::String> shortKeys, configs::Diagnostics& all) const;

private:
  struct Run {
    kj::ArrayPtr<const Setting> settings;
    configs::Diagnostics errors;
  };
  kj::Vector<Run> runs;
};

}  // namespace runner
