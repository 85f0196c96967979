// runner/experiment/step_traffic.h: what a training step sends and receives, before there is one.
// Pure.
#pragma once

#include "rpc/placement.h"
#include "runner/experiment/experiment.h"

namespace runner {

// Bytes of values a step, means where they are not the same in each. What nobody can know before,
// it assumes to be the most: that no two workers send the same of topk's few values, and that no
// sum of two-bit codes is 0.
struct StepTraffic {
  // Of one worker with all shards that are not its own.
  double pushed_bytes;
  double answered_bytes;
  // Of the shard that has most to do, with workers elsewhere; in: pushes, out: answers.
  double shardIn_bytes;
  double shardOut_bytes;
  // Where worker and server number i are on host i, and a host has one link: the busier way of the
  // busiest.
  double link_bytes;
};

// For shards that are not in the only worker. `placement` is the experiment's.
StepTraffic stepTraffic(const Experiment& experiment, const rpc::Placement& placement);

// The links of hosts, as far as a prediction needs to know them.
struct Links {
  double mbit;             // nominal, each way
  double overhead_ms = 0;  // of a step's pushes and pulls, beside their bytes: `bench network`
};

// The time that all pushes and pulls of a step take, if nothing is computed: `link_bytes` in
// Ethernet's frames of 1500 bytes, and the overhead.
double network_ms(const StepTraffic& traffic, const Links& links);

}  // namespace runner
