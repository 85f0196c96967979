// runner/roles/environment_roles.h: which role a process has in a job that another system started,
// from that system's variables and flags. The functions read nothing but their arguments.
#pragma once

#include <kj/function.h>
#include <kj/string.h>

#include "runner/experiment/cluster.h"
#include "runner/logs/job.capnp.h"

namespace runner {

// The flags of TensorFlow's examples: --ps_hosts, --worker_hosts, --job_name and --task_index.
// Empty if they are not given.
struct TaskFlags {
  kj::String psHosts;
  kj::String workerHosts;
  kj::String jobName;
  kj::String taskIndex;

  bool isGiven() const {
    return psHosts.size() + workerHosts.size() + jobName.size() + taskIndex.size() > 0;
  }
};

// The facts from which findRole() derives the role of a process.
struct RoleClues {
  // Returns the value of an environment variable. Null if it is not set or empty.
  kj::Function<kj::Maybe<kj::StringPtr>(kj::StringPtr name)> variable;
  TaskFlags flags;
  const ClusterConfig& cluster;
  bool isCoordinatorGiven = false;  // by --coordinator
};

// A role that a system gave to this process.
struct FoundRole {
  Role role;
  kj::Maybe<uint> index;            // null: the coordinator gives one
  bool carriesCoordinator = false;  // this process also runs the job's coordinator
  kj::String coordinator;           // its address for other roles: "node1:2222". Empty if unknown
  kj::String listen;                // where this process listens: "node1:2222". Empty if unknown
  bool meetsInFolder = false;       // the run's folder says where the coordinator is
  bool isOneHost = false;           // all roles are on this host
  kj::String from;                  // for people: "TF_CONFIG: worker 0 of 2"
};

// Returns the role according to the first system, in the order of SYSTEMS, whose flags or variables
// are set. Null if there is none. Throws if their values are wrong, or if the system started
// another number of servers or workers than `clues.cluster` has. The message names the variable,
// the place in its value, and what to do.
kj::Maybe<FoundRole> findRole(RoleClues& clues);

// Returns the index of a server or worker from JOB_COMPLETION_INDEX, the variable of an indexed
// Kubernetes Job. Null if it is not set. Throws if it is not a number.
kj::Maybe<uint> indexOfPod(Role role, RoleClues& clues);

// The systems in the order in which findRole() looks for them, for messages.
constexpr kj::StringPtr SYSTEMS =
    "--ps_hosts …, TF_CONFIG, DMLC_ROLE, OMPI_COMM_WORLD_RANK, PMI_RANK, SLURM_PROCID"_kj;

}  // namespace runner
