// runner/roles/role_options.h: the options of one role: a process, or a thread with launcher
// inline.
#pragma once

#include <kj/array.h>
#include <kj/string.h>
#include <kj/time.h>
#include <signal.h>

#include "rpc/trace.h"
#include "rpc/wire/listener.h"
#include "rpc/wire/secret.h"
#include "runner/logs/job.capnp.h"
#include "runner/logs/run_folder.h"
#include "runner/roles/one_thread.h"

namespace runner {

using kj::uint;

// Where a role listens.
struct ListenPlace {
  kj::String host = kj::str(rpc::LOOPBACK);  // an address of this machine, in numbers
  kj::Maybe<rpc::PortRange> ports;           // null: cluster.port
};

// A data set that a launcher has copied to this machine.
struct CopiedData {
  kj::String folder;  // of the packed records
  kj::String digest;  // of the run, with its records: see addRecords() in experiment.h
};

// The line that a coordinator writes to its launcher before the error line of a failure, if the
// cause is that a role is silent or cannot be reached.
constexpr kj::StringPtr LOST_ROLE_LINE = "a role was lost"_kj;

// A role's message when the coordinator has left without a reason. The coordinator knows the
// reason.
constexpr kj::StringPtr COORDINATOR_GONE = " is gone; see there why the job has ended"_kj;

// The signal by which a launcher asks the coordinator to save the run now. The coordinator's
// process captures it before it starts a second thread. Otherwise the signal would end the process.
constexpr int SAVE_SIGNAL = SIGUSR2;

// A job that is interrupted gets this time to be saved.
constexpr auto SAVES_WITHIN = 4 * kj::SECONDS;

// One role of a job.
struct RoleOptions {
  Role role;
  uint index = 0;
  // The coordinator's address. Empty for the coordinator itself, and for roles that find the
  // address in `folder`.
  kj::String coordinator;
  RunFolder folder;                            // the folder of the run, as the coordinator sees it
  kj::Maybe<rpc::TraceSteps> trace = nullptr;  // the steps to record. The trace goes to `folder`
  // Whether a launcher started the role. The launcher learns why each role ended, and records how
  // the run ended. Without a launcher, the roles tell the coordinator why they end, and the
  // coordinator records it. Every role then also reports to the user on stderr.
  bool launched = false;
  // The secret by which the job's roles prove that they belong to it: see rpc/wire/proof.h. Unset:
  // roles of any user of this machine can join.
  rpc::Secret secret = {};
  // Null: a coordinator listens on the loopback, and another role that holds a shard listens at the
  // address through which it reaches the coordinator.
  kj::Maybe<ListenPlace> listen = nullptr;
  // Whether another system started the role and gave it its place in the job: see
  // environment_roles.h. The name of the coordinator's host may then be known later than the role
  // starts.
  bool isFromEnvironment = false;
  // For the coordinator: whether it continues the run in `folder` from its newest checkpoint.
  bool resumes = false;
  // The folder of a run. Workers of this run leave and join at the same steps as there. Empty:
  // none.
  kj::String membershipOf = {};
  // Whether all roles have the same `folder`, and find the coordinator there: see address_file.h.
  bool meetsInFolder = false;
  // Of a worker: see ClusterConfig::devicesOf().
  kj::Maybe<uint> workersBefore = nullptr;
  // Null: the role imports its data set, or finds it imported.
  kj::Maybe<CopiedData> data = nullptr;
  // The signals that end a server or worker, which the process has captured. The role then tells
  // the coordinator and ends its process with exit code INTERRUPTED. A worker with a launcher
  // leaves the job between two steps. So does one without, at SIGTERM, if cluster.on_loss is
  // "continue". Empty: the role does not handle signals.
  kj::Array<int> signals = nullptr;
  // Ends the process of a worker whose compute thread hangs, when the job is over for this worker.
  // `failure` says why it is over. Null: the launcher ends the process, or other roles share it.
  void (*endHanging)(const kj::Exception& failure) = nullptr;
  // Ends the process of a coordinator whose job has failed with `failure`, or was interrupted
  // (null). The coordinator calls it before it destroys what may wait for a slow disk. Otherwise a
  // launcher would report a consequence meanwhile, and nobody could interrupt the process. Null:
  // the process does not end with this role, as with launcher `inline`.
  kj::Maybe<kj::ConstFunction<void(kj::Maybe<const kj::Exception&> failure)>> endEarly = nullptr;
  // Null except in simulations: the role has its own threads.
  kj::Maybe<const OneThread&> oneThread = nullptr;

  // Returns a new event loop for the calling thread of the role.
  kj::AsyncIoContext newIo() const {
    KJ_IF_MAYBE(shared, oneThread) return shared->newIo();
    return kj::setupAsyncIo();
  }
};

}  // namespace runner
