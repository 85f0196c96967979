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

  // Adds every error to `all` once. All values of a range have the same place in the file. Errors
  // there that differ only in numbers therefore count as one error.
  //
  // If only some runs have an error, the message also says how many, and names the first of them.
  // It does not if the error already shows which runs these are: all runs with the setting at the
  // error's place, or all runs with the value that the message names. Errors that differ in numbers
  // always get this addition, because only the first message is shown.
  void tell(kj::ArrayPtr<const kj::String> shortKeys, configs::Diagnostics& all) const;

private:
  struct Run {
    kj::ArrayPtr<const Setting> settings;
    configs::Diagnostics errors;
  };
  kj::Vector<Run> runs;
};

}  // namespace runner
