// tests/simulation/account.h: the steps of a simulated run according to its events, and their
// records.
#pragma once

#include <kj/array.h>
#include <kj/string.h>
#include <kj/vector.h>

#include <map>
#include <vector>

#include "runner/experiment/experiment.h"
#include "runner/logs/run_folder.h"

namespace simulation {

using kj::uint;

// The content of a run's events.
struct Account {
  kj::String counts;        // steps, images and pushes, one line each
  bool hasChanges = false;  // of the members
  kj::String members;       // these changes, one line each, without those after the last epoch
  kj::String events;        // as they are in the file

  // A worker is a member from its first step on. Its last step counts if a server has a part of its
  // gradient.
  struct Membership {
    uint rank;
    uint64_t begin;
    uint64_t end;
    bool lostWithin = false;  // the last step was not ended
  };
  kj::Vector<Membership> memberships;
  uint64_t steps = 0;       // of the whole run
  uint64_t pushed = 0;      // slices
  uint64_t applied = 0;     // of these
  uint64_t heldOfLost = 0;  // slices that lost workers pushed in steps that they did not finish
  uint64_t stalest = 0;     // the largest staleness of a push
  kj::Vector<uint64_t> validated;  // images, of each validation
};

// Reads the events of the run in `folder`, which began with the given number of workers.
Account accountOf(const runner::RunFolder& folder, uint workers, uint epochs);

// The records with which workers have made their steps. If a step is made again, the last time
// counts.
class ReadRecords {
public:
  void add(uint rank, uint64_t step, kj::ArrayPtr<const uint64_t> draws);
  // Returns an error if a record counts more than once per pass, or not at all although there was a
  // step for it.
  kj::Maybe<kj::String> wrongIn(
      const Account& account, const runner::Experiment& experiment, uint64_t records) const;

private:
  std::map<std::pair<uint, uint64_t>, std::vector<uint64_t>> steps;  // by rank and step
};

}  // namespace simulation
