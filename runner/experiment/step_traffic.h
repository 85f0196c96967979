// runner/experiment/step_traffic.h: predicts the traffic of a training step. Pure functions.
#pragma once

#include "rpc/placement.h"
#include "runner/experiment/experiment.h"

namespace runner {

// Bytes of values per step, or their means if steps differ. If the number of bytes depends on the
// values, this is its upper limit. For topk, it assumes that all workers send values at different
// positions. For two-bit codes, it assumes that no sum of codes is 0.
struct StepTraffic {
  // Between one worker and all shards outside of its process.
  double pushed_bytes;
  double answered_bytes;
  // Between the busiest shard and the workers in other processes. In: pushes. Out: answers.
  double shardIn_bytes;
  double shardOut_bytes;
  // The busier direction of the busiest link, if worker i and server i run on host i, and each host
  // has one link.
  double link_bytes;
};

// Predicts the traffic of an experiment whose kvstore exchanges values. `placement` must be the
// experiment's.
StepTraffic stepTraffic(const Experiment& experiment, const rpc::Placement& placement);

// The network of the hosts, as far as the prediction needs it.
struct Links {
  double mbit;             // nominal, in each direction
  double overhead_ms = 0;  // of a step's pushes and pulls, apart from their bytes: `bench network`
};

// Returns the time of all pushes and pulls of a step without any computation: `link_bytes` in
// Ethernet frames of 1500 bytes, and the overhead.
double network_ms(const StepTraffic& traffic, const Links& links);

}  // namespace runner
