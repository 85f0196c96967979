// tests/hosts/conditions.h: conditions under which a job over several hosts trains the same bits as
// one machine.
#pragma once

#include "tests/hosts/hosts.h"

namespace tests {

struct Condition {
  kj::StringPtr name;
  kj::Array<kj::StringPtr> settings;                // of the job, for --set
  kj::ArrayPtr<const kj::StringPtr> hostVariables;  // of ODD_HOST, for Hosts::setVariables()
  kj::String weightsSha256;                         // the weights that one machine trains
};

// The host that differs from the others. It should have a worker.
constexpr uint ODD_HOST = 2;

// Returns the conditions for a job of `file` with these settings, which must live as long as the
// result. Trains on this machine.
kj::Array<Condition> conditionsOf(kj::StringPtr file, kj::ArrayPtr<const kj::StringPtr> settings);

}  // namespace tests
