// runner/roles/tensorflow_cluster.h: translates TensorFlow's roles: chief, worker, ps.
#pragma once

#include <kj/vector.h>

#include "runner/roles/environment_roles.h"

namespace runner {

// A cluster as TF_CONFIG and the flags of TensorFlow's examples describe it. Entries are HOST:PORT.
struct TensorFlowCluster {
  kj::StringPtr source;  // "TF_CONFIG"
  kj::Maybe<kj::String> chief;
  kj::Array<kj::String> workers;
  kj::Array<kj::String> servers;

  // Returns the role of a task. The chief is the coordinator and worker 0. Without a chief, the
  // process of worker 0 also runs the coordinator. `place` names the task's index in messages.
  // Throws if the cluster or the task is wrong: see findRole().
  FoundRole roleOf(
      kj::StringPtr type, uint64_t index, kj::StringPtr place, const ClusterConfig& job) const;
};

// Returns the role by TF_CONFIG, whose value is `text`.
FoundRole roleByTfConfig(kj::StringPtr text, const ClusterConfig& job);

// Returns the role by the flags.
FoundRole roleByFlags(const TaskFlags& flags, const ClusterConfig& job);

// Throws unless the job has as many servers and workers as `source` says. Names the --set to use.
void requireCounts(
    kj::StringPtr source, uint64_t servers, uint64_t workers, const ClusterConfig& job);

}  // namespace runner
