// runner/experiment/cluster.h: the roles of a run, who starts them, and where.
#pragma once

#include <kj/array.h>
#include <kj/string.h>
#include <kj/time.h>

#include "configs/language/reader.h"
#include "rpc/modes/modes.h"
#include "rpc/wire/listener.h"
#include "runner/experiment/hosts.h"
#include "runner/experiment/kubernetes_config.h"

namespace runner {

using kj::uint;

// Who starts the roles: see launch/launchers.h.
struct LauncherKind {
  const char* name;
  const char* doc;
  enum Word { LOCAL, INLINE, SSH, MANUAL, KUBERNETES, MPI, SLURM } word;
  bool sweeps;  // whether it can start the runs of a sweep, one after the other
  // Whether it places roles on cluster.hosts.
  enum Hosts { UNUSED, OPTIONAL, REQUIRED } hosts = UNUSED;
};

// A value of cluster.instruction_set.
struct InstructionSetKind {
  const char* name;
  const char* doc;
};

// The value of cluster.instruction_set for the highest level that all workers' hosts have.
constexpr kj::StringPtr AUTO_INSTRUCTION_SET = "auto"_kj;

// What the job does when it loses a role.
struct LossPolicy {
  const char* name;
  const char* doc;
  bool restarts;   // all roles are started again
  bool continues;  // if it is a worker, the others continue
};

// [cluster] elastic
struct ElasticConfig {
  uint min;  // workers
  uint max;

  // Reads the key for a job that starts with `workers` workers.
  static ElasticConfig read(configs::Reader& reader, uint workers);
};

// [cluster]
struct ClusterConfig {
  static constexpr uint START_TIMEOUT_S = 60;   // the default
  static constexpr uint SILENCE_TIMEOUT_S = 5;  // the default

  const LauncherKind* launcher;
  uint servers;
  uint serversPerProcess;
  uint workers;
  uint threadsPerWorker;          // per device
  kj::Array<kj::String> devices;  // of each worker: "cpu", "cuda:1"
  configs::Span devicesSpan;
  kj::StringPtr instructionSet;  // "auto", "avx2", "avx512", "avx512_amx"
  const LossPolicy* onLoss;
  ElasticConfig elastic;            // without the key: from 1 to `workers`
  kj::Array<Host> hosts;            // for launchers of several machines. Empty: none are named
  kj::String mpirun;                // the command of launcher mpi
  kj::Maybe<kj::String> interface;  // where the coordinator listens: "eth0" or an address
  kj::String ssh;                   // the command, for launcher ssh
  kj::Maybe<kj::String> image;      // of containers. Not null with launcher kubernetes
  kj::Maybe<KubernetesConfig> kubernetes;  // not null with launcher kubernetes
  rpc::PortRange ports;
  bool tls;  // TCP connections of the job are encrypted
  uint startTimeout_s;
  uint silenceTimeout_s;
  uint stallTimeout_s;  // 0: no limit

  // Returns how many workers the job may have at a time.
  uint seats() const { return onLoss->continues ? elastic.max : workers; }
  kj::Duration silence() const { return silenceTimeout_s * kj::SECONDS; }
  // The silence limit of a connection between a worker and a server. It leaves time for a new
  // connection.
  kj::Duration connectionSilence() const { return silence() / 2; }
  // Returns "2 servers and 1 worker", or "1 worker, no servers".
  kj::String roles() const;

  // Returns how many servers, from number `first` on, share a process. 0 if no process begins with
  // `first`.
  uint serversOfProcess(uint first) const;

  // Whether all roles run on the machine of `runner run`.
  bool isHere() const;
  // Returns where each role runs. `hosts` must not be empty.
  RoleHosts roleHosts() const;
  // Returns the devices of a worker. On a host with slots, each worker has GPUs of its own: see
  // devicesAfter(). `workersBefore` is how many other workers of the host use GPUs with lower
  // numbers. If it is null, the number follows from roleHosts(), and is 0 without hosts.
  kj::Array<kj::String> devicesOf(uint worker, kj::Maybe<uint> workersBefore = nullptr) const;

  // The defaults depend on `kvstore`. Experiment::read() checks the rest against it.
  static ClusterConfig read(configs::Reader& reader, const rpc::KvStoreConfig& kvstore);
};

}  // namespace runner
