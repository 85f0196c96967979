#include "runner/roles/environment_roles.h"

#include <kj/debug.h>

#include "configs/language/failure.h"
#include "runner/logs/role_names.h"
#include "runner/roles/role_addresses.h"
#include "runner/roles/tensorflow_cluster.h"
#include "runner/text/numbers.h"

namespace runner {

namespace {

kj::StringPtr required(RoleClues& clues, kj::StringPtr name, kj::StringPtr because) {
  KJ_IF_MAYBE(value, clues.variable(name)) return *value;
  configs::fail(name, " is not set, but ", because, " is: set it for every role");
}

uint numberIn(kj::StringPtr name, kj::StringPtr value) {
  KJ_IF_MAYBE(n, parseWhole(value, 999'999'999)) return *n;
  configs::fail(name, " is `", value, "`, which is not a whole number from 0");
}

uint requiredNumber(RoleClues& clues, kj::StringPtr name, kj::StringPtr because) {
  return numberIn(name, required(clues, name, because));
}

// ---- TensorFlow

kj::Maybe<FoundRole> byFlags(RoleClues& clues) {
  if (!clues.flags.isGiven()) return nullptr;
  return roleByFlags(clues.flags, clues.cluster);
}

kj::Maybe<FoundRole> byTfConfig(RoleClues& clues) {
  return clues.variable("TF_CONFIG").map([&](kj::StringPtr text) {
    return roleByTfConfig(text, clues.cluster);
  });
}

// ---- MXNet and ps-lite

kj::Maybe<FoundRole> byDmlc(RoleClues& clues) {
  constexpr kj::StringPtr ROLE = "DMLC_ROLE"_kj, URI = "DMLC_PS_ROOT_URI"_kj,
                          PORT = "DMLC_PS_ROOT_PORT"_kj;
  KJ_IF_MAYBE(role, clues.variable(ROLE)) {
    FoundRole found;
    if (*role == "scheduler") {
      found.role = Role::COORDINATOR;
    } else if (*role == "server") {
      found.role = Role::SERVER;
    } else if (*role == "worker") {
      found.role = Role::WORKER;
    } else {
      configs::fail(ROLE, " is `", *role, "`: set it to scheduler, server or worker");
    }
    auto host = required(clues, URI, ROLE);
    auto port = required(clues, PORT, ROLE);
    bool isIpv6 = host.findFirst(':') != nullptr && !host.startsWith("[");
    found.coordinator = isIpv6 ? kj::str("[", host, "]:", port) : kj::str(host, ":", port);
    if (parseHostAndPort(found.coordinator) == nullptr) {
      configs::fail(URI, " and ", PORT, " are `", host, "` and `", port,
          "`, which are not a host and a port from 1 to 65535");
    }
    requireCounts("DMLC_NUM_SERVER and DMLC_NUM_WORKER",
        requiredNumber(clues, "DMLC_NUM_SERVER", ROLE),
        requiredNumber(clues, "DMLC_NUM_WORKER", ROLE), clues.cluster);
    found.from = kj::str(ROLE, "=", *role);
    if (found.role == Role::COORDINATOR) {
      found.listen = kj::str(found.coordinator);
      found.index = 0u;
      return kj::mv(found);
    }
    auto id = found.role == Role::SERVER ? "DMLC_SERVER_ID"_kj : "DMLC_WORKER_ID"_kj;
    KJ_IF_MAYBE(text, clues.variable(id)) {
      found.index = numberIn(id, *text);
      found.from = kj::str(found.from, " ", id, "=", *text);
    }
    return kj::mv(found);
  }
  KJ_IF_MAYBE(uri, clues.variable(URI)) {
    configs::fail(URI, " is `", *uri, "`, but ", ROLE,
        " is not set: set it to scheduler, server or ", "worker, or unset ", URI);
  }
  return nullptr;
}

// ---- MPI and Slurm: one program on every rank.

struct RankVariables {
  kj::StringPtr rank;
  kj::StringPtr size;
  // The variable with the number of ranks on this host, or of the hosts of all ranks.
  kj::StringPtr together;
  bool countsHosts;
};

constexpr RankVariables OPEN_MPI = {
    "OMPI_COMM_WORLD_RANK"_kj, "OMPI_COMM_WORLD_SIZE"_kj, "OMPI_COMM_WORLD_LOCAL_SIZE"_kj, false};
constexpr RankVariables MPICH = {"PMI_RANK"_kj, "PMI_SIZE"_kj, "MPI_LOCALNRANKS"_kj, false};
constexpr RankVariables SLURM = {"SLURM_PROCID"_kj, "SLURM_NTASKS"_kj, "SLURM_NNODES"_kj, true};

// Returns a text about the number of ranks that the experiment needs.
void requireSize(const RankVariables& names, uint size, uint servers, bool hasCoordinator,
    const ClusterConfig& job) {
  uint others = servers + hasCoordinator;
  uint needed = others + job.workers;
  if (size == needed) return;
  kj::String setting;
  if (size > others) {
    setting = kj::str(", or start every role with --set cluster.workers=", size - others);
  }
  configs::fail(names.size, " is ", size, ", but the job has ", needed,
      " processes: ", hasCoordinator ? "the coordinator, " : "", servers, " of servers and ",
      job.workers, " of workers. Start ", needed, setting);
}

kj::Maybe<FoundRole> byRank(RoleClues& clues, const RankVariables& names) {
  KJ_IF_MAYBE(text, clues.variable(names.rank)) {
    auto& job = clues.cluster;
    uint rank = numberIn(names.rank, *text);
    uint size = requiredNumber(clues, names.size, names.rank);
    bool hasCoordinator = !clues.isCoordinatorGiven;
    uint servers = (job.servers + job.serversPerProcess - 1) / job.serversPerProcess;
    requireSize(names, size, servers, hasCoordinator, job);
    if (rank >= size) {
      configs::fail(names.rank, " is ", rank, ", but ", names.size, " is ", size);
    }
    FoundRole found;
    found.meetsInFolder = hasCoordinator;
    KJ_IF_MAYBE(together, clues.variable(names.together)) {
      found.isOneHost = numberIn(names.together, *together) == (names.countsHosts ? 1 : size);
    }
    found.from = kj::str(names.rank, ": rank ", rank, " of ", size);
    if (hasCoordinator && rank == 0) {
      found.role = Role::COORDINATOR;
      found.index = 0u;
      return kj::mv(found);
    }
    uint place = rank - hasCoordinator;
    found.role = place < servers ? Role::SERVER : Role::WORKER;
    found.index = place < servers ? place * job.serversPerProcess : place - servers;
    return kj::mv(found);
  }
  return nullptr;
}

kj::Maybe<FoundRole> byOpenMpi(RoleClues& clues) {
  return byRank(clues, OPEN_MPI);
}
kj::Maybe<FoundRole> byMpich(RoleClues& clues) {
  return byRank(clues, MPICH);
}
kj::Maybe<FoundRole> bySlurm(RoleClues& clues) {
  return byRank(clues, SLURM);
}

// One row per system, in the order of SYSTEMS. Variables that a user sets come before those of a
// launcher, and those of a launcher inside an allocation (mpirun) before those of the allocation
// (Slurm).
constexpr kj::Maybe<FoundRole> (*ROWS[])(RoleClues&) = {
    byFlags, byTfConfig, byDmlc, byOpenMpi, byMpich, bySlurm};

}  // namespace

kj::Maybe<FoundRole> findRole(RoleClues& clues) {
  for (auto row: ROWS) {
    auto found = row(clues);
    if (found == nullptr) continue;
    auto& role = KJ_ASSERT_NONNULL(found);
    if (clues.isCoordinatorGiven && role.coordinator.size() > 0) {
      configs::fail("leave out --coordinator: the coordinator is at ", role.coordinator, " (",
          role.from, ")");
    }
    return kj::mv(found);
  }
  return nullptr;
}

kj::Maybe<uint> indexOfPod(Role role, RoleClues& clues) {
  constexpr kj::StringPtr INDEX = "JOB_COMPLETION_INDEX"_kj;
  return clues.variable(INDEX).map([&](kj::StringPtr text) {
    uint64_t index = numberIn(INDEX, text);
    if (role == Role::SERVER) index *= clues.cluster.serversPerProcess;
    // No job has so many roles. The caller refuses the number.
    return uint(kj::min(index, uint64_t(UINT32_MAX)));
  });
}

}  // namespace runner
