// runner/experiment/asha.h: decides which runs of a sweep continue, by asynchronous successive
// halving.
#pragma once

#include <kj/common.h>
#include <kj/string.h>
#include <kj/vector.h>

#include "configs/language/reader.h"

namespace runner {

using kj::uint;

// [sweep] stop = { kind = "asha", … }
struct AshaConfig {
  uint firstEpoch;
  uint keepOneIn;

  static AshaConfig read(configs::Reader& reader);

  // Returns the table as in a file, every key with its value.
  kj::String print() const;
};

// Returns why the rule can stop no run of a sweep, as a sentence. Null if it can. `epochs` is the
// length of the longest run. `validates` says whether the runs have records to validate on.
kj::Maybe<kj::String> whyStopsNothing(const AshaConfig& config, uint epochs, bool validates);

// The rule of Li et al. 2020, "A System for Massively Parallel Hyperparameter Tuning"
// (arXiv:1810.05934), in the form that stops runs and never waits for others. A rung is an epoch
// first_epoch · keep_one_in^k. At a rung, a run continues if it is among the best 1/keep_one_in
// (rounded up) of the runs that have reached the rung so far, itself included.
class Asha {
public:
  explicit Asha(AshaConfig config): config(config) {}

  kj::String rule() const { return config.print(); }
  bool isRung(uint epoch) const;

  // Notes the accuracy of a run at `epoch`, and returns whether it may continue. A rung counts each
  // run once, so the caller must not report an epoch twice. A NaN is worse than all numbers.
  // Between rungs, every run continues.
  bool keeps(uint epoch, double accuracy);

private:
  struct Rung {
    uint epoch;
    kj::Vector<double> accuracies;
  };

  const AshaConfig config;
  kj::Vector<Rung> rungs;
};

}  // namespace runner
