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

  // Adds every error to `all` once. If only some runs have an error, it comes from their settings.
  // The message then says how many runs have the error, and names the first of them. This is not
  // necessary if the error is reported at the place of a setting, and all runs with this setting
  // have it, or if the message itself names the only wrong value of a range. All values of a range
  // are at one place in the file. Therefore, errors there that differ only in numbers count as one.
  void tell(kj::ArrayPtr<const kj::String> shortKeys, configs::Diagnostics& all) const;

private:
  struct Run {
    kj::ArrayPtr<const Setting> settings;
    configs::Diagnostics errors;
  };
  kj::Vector<Run> runs;
};

}  // namespace runner
