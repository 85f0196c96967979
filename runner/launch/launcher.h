// runner/launch/launcher.h: starts, watches and ends the roles of a run, wherever they run.
#pragma once

#include <kj/array.h>
#include <kj/async-io.h>
#include <kj/function.h>
#include <kj/string.h>

#include "rpc/trace.h"
#include "rpc/wire/secret.h"
#include "runner/experiment/experiment.h"
#include "runner/launch/run_view.h"
#include "runner/logs/run_folder.h"
#include "runner/roles/role_options.h"

namespace runner {

// Exit code of a role that failed because another role did.
constexpr int LOST_A_PEER_EXIT = 75;
// Exit code of a role whose device has failed: see nn/lost_device.h.
constexpr int LOST_DEVICE_EXIT = 76;
// The line that a rank of mpirun or srun writes before the error line of such a failure. It is
// needed because a rank's exit code does not reach the launcher.
constexpr kj::StringPtr LOST_A_PEER_LINE = "another role was lost"_kj;
// The same line for a role whose device has failed.
constexpr kj::StringPtr LOST_DEVICE_LINE = "the device has failed"_kj;

// Why a role failed, or must fail. A lower rank is nearer to the cause.
struct Failure {
  // ABSENT: the role has never joined. COMMAND_ENDED: the command that starts ranks ended, and no
  // rank has said why.
  enum Rank { KILLED, STOPPED, FAILED, SILENT, ABSENT, LOST_A_PEER, COMMAND_ENDED } rank;
  kj::String reason;
};

// One server or worker, and its host.
struct PlacedRole {
  Role role;
  uint index;
  kj::String host;  // as the user calls it. Empty: this machine
  // How many other workers of the host use GPUs with lower numbers: see devicesAfter(). 0 on a host
  // without slots.
  uint workersBefore = 0;

  // Returns the name in messages: "worker 1", "worker 1 on node2".
  kj::String name() const;
};

// Roles that are started together, and end together.
struct RoleGroup {
  kj::String name;  // in messages: "worker 1 on node2", "the process of servers 0 to 1"
  kj::Array<PlacedRole> roles;
};

// A group that was started, or the coordinator. The destructor ends its processes.
class StartedGroup {
public:
  virtual ~StartedGroup() noexcept(false) = default;
  // Resolves when all its roles have ended: with null if they ended well. Call once.
  virtual kj::Promise<kj::Maybe<Failure>> ended() = 0;
  // Whether a signal (SIGSTOP, SIGTSTP) has stopped the group, and it has not continued since.
  // False if the launcher cannot see that.
  virtual bool isStopped() { return false; }
  // Asks a listening coordinator to save the run now. Returns false if it cannot be asked.
  virtual bool requestSave() { return false; }
  // Asks a worker to leave the job, which continues without it.
  virtual void requestLeave() {}
};

// A coordinator that was started, and its messages to the launcher.
struct StartedCoordinator {
  kj::Own<kj::AsyncInputStream> events;  // one line of JSON per event
  kj::Own<StartedGroup> process;
};

class Launch;
class Launcher;
struct LaunchedRun;

// Lets the owner of a launch ask for a checkpoint. It must outlive the launch.
class SaveHook {
public:
  // Saves the run: see Launch::save(). Resolves immediately if no role runs.
  kj::Promise<void> save();

  kj::Maybe<Launch&> launch;  // set while roles run
};

// The options of `runner run` that a launch needs besides the file.
struct LaunchOptions {
  kj::Maybe<rpc::TraceSteps> trace = nullptr;  // the steps that servers and workers record
  // Whether hosts that lack the data set get a copy from this machine. For launcher ssh.
  bool copiesData = false;
  bool resumes = false;  // whether the run in the folder continues from its newest checkpoint
  bool wasLost = false;  // whether this attempt follows one that lost a role
  SaveHook* saveHook = nullptr;  // may be null
  // The folder of a run. Workers of this run leave and join at the same steps as there. Empty:
  // none.
  kj::StringPtr membershipOf = "";
  // Makes the launcher of each attempt, in place of the one that the file names. Only for
  // simulations. Otherwise null.
  const kj::ConstFunction<kj::Own<Launcher>(const LaunchedRun&)>* newLauncher = nullptr;
};

// One run, as its launcher sees it. All that it refers to must outlive the launcher.
struct LaunchedRun {
  const LoadedExperiment& loaded;
  const RunFolder& folder;
  RunView& view;
  kj::AsyncIoContext& io;  // its port captures child exits
  LaunchOptions options = {};
  rpc::Secret secret = rpc::Secret::random();

  const Experiment& experiment() const { return KJ_ASSERT_NONNULL(loaded.experiment); }
  // Returns the options of a role of this run. `coordinator` is the coordinator's address, and
  // empty for the coordinator itself.
  RoleOptions optionsOf(Role role, uint index, kj::StringPtr coordinator) const;
};

// Returns "worker 1: TEXT". Returns the text alone if it begins with that name.
kj::String saidBy(kj::StringPtr name, kj::StringPtr text);

// Starts the roles of one run. Each launcher is a row of LAUNCHERS (runner/experiment/cluster.cc)
// and a file of this folder. Launch calls its functions in the order in which they are declared
// here.
class Launcher {
public:
  virtual ~Launcher() noexcept(false) = default;

  // Prepares the hosts. Resolves to the place where the coordinator must listen so that all hosts
  // reach it. Rejects with the host, the cause and what to do.
  virtual kj::Promise<ListenPlace> prepare() { return ListenPlace(); }
  // Starts the coordinator on this machine.
  virtual StartedCoordinator startCoordinator(ListenPlace place) = 0;
  // Returns how the servers and workers are divided into groups.
  virtual kj::Array<RoleGroup> groups() const = 0;
  // Starts a group. The coordinator already listens at the address `coordinator`.
  virtual kj::Own<StartedGroup> start(const RoleGroup& group, kj::StringPtr coordinator) = 0;
  // Called when all roles have joined. They no longer need any file that the launcher wrote for
  // them.
  virtual void allJoined() {}
};

// Returns one group for each process, all on this machine.
kj::Array<RoleGroup> groupsHere(const ClusterConfig& cluster);
// Returns one group for each process, on the hosts of `cluster.hosts`, or all on this machine if
// that names none. Groups of the same host follow each other. Groups of the lost hosts in `gone`
// are moved to the other hosts, each to the one that has the fewest. A host never has more workers
// than slots. Throws if all hosts are lost, or if the others have too few slots.
kj::Array<RoleGroup> groupsOnHosts(
    const ClusterConfig& cluster, kj::ArrayPtr<const kj::String> gone = nullptr);

// Returns the place where the coordinator must listen so that all of `cluster.hosts` reach it.
// Looks up names, which may take seconds. Throws with the cause and what to do.
ListenPlace listenPlaceFor(const ClusterConfig& cluster);

}  // namespace runner
