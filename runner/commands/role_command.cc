#include "runner/commands/role_command.h"

#include <errno.h>
#include <kj/async-unix.h>
#include <kj/thread.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "configs/language/failure.h"
#include "runner/logs/role_names.h"
#include "runner/roles/job_secret.h"
#include "runner/roles/role_addresses.h"
#include "runner/system/addresses.h"
#include "runner/system/files.h"
#include "runner/system/interrupts.h"
#include "runner/system/machine.h"
#include "runner/system/reason.h"
#include "runner/system/terminal.h"
#include "runner/system/version.h"
#include "runner/text/numbers.h"

namespace runner {

namespace {

// A launcher that dies closes our standard input. A separate thread notices this even if all other
// threads are busy.
void endWithStdin() {
  kj::Thread([]() {
    // Leaves signals to the threads that wait for them.
    sigset_t all;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_BLOCK, &all, nullptr);
    char byte;
    ssize_t n;
    do {
      n = ::read(STDIN_FILENO, &byte, 1);
    } while (n > 0 || (n < 0 && errno == EINTR));
    ::_exit(RUN_FAILED);
  }).detach();
}

// Returns the numeric address at which the coordinator listens, so that roles that connect to
// `host` reach it.
kj::String coordinatorsHost(const ClusterConfig& cluster, kj::StringPtr host, bool isOneHost) {
  KJ_IF_MAYBE(named, cluster.interface) return addressOfInterface(*named);
  return ownAddressOf(host, isOneHost);
}

Validity setNumber(kj::StringPtr word, kj::Maybe<uint>& to) {
  constexpr uint NUMBER_MAX = 1000000;
  KJ_IF_MAYBE(number, parseWhole(word, NUMBER_MAX)) {
    to = uint(*number);
    return true;
  }
  return kj::str("`", word, "` is not a whole number from 0 to ", NUMBER_MAX);
}

kj::Maybe<kj::StringPtr> variable(kj::StringPtr name) {
  auto value = ::getenv(name.cStr());
  if (value == nullptr || *value == '\0') return nullptr;
  return kj::StringPtr(value);
}

}  // namespace

kj::MainFunc RoleCommand::getMain() {
  kj::MainBuilder builder(commandLine, VERSION,
      "Runs one role of the job described by FILE. Start all roles with the same file and the "
      "same --set. The coordinator makes the run's folder and says where it listens. Like `runner "
      "run`, it shows the log, prints the table, writes the report, and returns the same exit "
      "codes. A server or worker that ends because another role was lost returns exit code 75.\n"
      "\n"
      "If the environment variable RUNNER_SECRET_FILE names a file, only roles that know the "
      "secret in the file can join. `(umask 077; openssl rand -hex 32 > FILE)` makes such a file.\n"
      "\n"
      "  runner role x.toml --role coordinator --folder /tmp/run\n"
      "  runner role x.toml --role server --index 0 --coordinator 127.0.0.1:41234\n"
      "  runner role x.toml --role worker --index 0 --coordinator 127.0.0.1:41234\n"
      "\n"
      "On several hosts, with a secret:\n"
      "\n"
      "  runner role x.toml --role coordinator --folder /tmp/run --listen 10.0.0.4:7000\n"
      "  runner role x.toml --role worker --index 0 --coordinator 10.0.0.4:7000\n"
      "\n"
      "Without --role, the process takes the role that another system gives it, and says so. It "
      "asks in this order: --job_name and its flags, TF_CONFIG, DMLC_ROLE, OpenMPI, MPICH, Slurm. "
      "With --role server or worker, the default of --index is JOB_COMPLETION_INDEX, which a "
      "Kubernetes Job sets. With MPI and Slurm, the first rank is the coordinator, then come the "
      "servers, then the workers. They find each other by --folder:\n"
      "\n"
      "  mpirun -np 4 runner role x.toml --folder /shared/run");
  auto text = [](kj::String& to) {
    return [&to](kj::StringPtr word) -> Validity {
      to = kj::str(word);
      return true;
    };
  };
  builder
      .addOptionWithArg(
          {"role"}, KJ_BIND_METHOD(*this, setRole), "ROLE", "coordinator, server or worker")
      .addOptionWithArg({"index"}, KJ_BIND_METHOD(*this, setIndex), "N",
          "the rank of this server or worker, from 0 (default: 0). If the process holds several "
          "servers: the rank of the first")
      .addOptionWithArg({"coordinator"}, KJ_BIND_METHOD(*this, setCoordinator), "ADDRESS",
          "where the coordinator listens")
      .addOptionWithArg({"listen"}, KJ_BIND_METHOD(*this, setListen), "ADDRESS",
          "where a coordinator listens: an address of this machine such as 10.0.0.4, with or "
          "without a port (default: cluster.interface, or else the loopback, and cluster.port). "
          "The "
          "other roles listen where they reach the coordinator")
      .addOptionWithArg({"folder"}, folderSetter(folder, "name a folder, e.g. /tmp/runs"), "DIR",
          "for the coordinator: the folder of the run, which is created if necessary and must not "
          "hold a run yet, except with --resume (default: a new folder below runs). For other "
          "roles: the folder for their trace")
      .addOption({"resume"}, flagSetter(resumes),
          "for the coordinator: continue the run in its folder, from its newest checkpoint")
      .addOptionWithArg({"membership"}, text(membershipOf), "RUN",
          "repeat the losses and joins of workers of the run in this folder")
      .addOptionWithArg({"ps_hosts"}, text(flags.psHosts), "HOST:PORT,…",
          "the servers, as in TensorFlow's examples")
      .addOptionWithArg({"worker_hosts"}, text(flags.workerHosts), "HOST:PORT,…",
          "the workers; the first of them also runs the coordinator, at its address")
      .addOptionWithArg(
          {"job_name"}, text(flags.jobName), "JOB", "what this process is: ps or worker")
      .addOptionWithArg({"task_index"}, text(flags.taskIndex), "N",
          "which entry of --ps_hosts or --worker_hosts this process is, from 0")
      .addOptionWithArg({"trace-steps"}, traceStepsSetter(traceSteps), "A-B",
          "record what this server or worker does in these steps, counted from 0, and write the "
          "trace to the DIR of --folder, which must exist")
      .addOptionWithArg({"data"}, text(data.folder), "DIR",
          "open the packed records in DIR, whatever data.source says")
      .addOptionWithArg({"digest"}, text(data.digest), "HEX",
          "needed with --data: the digest of the run. Launcher ssh passes both")
      .addOptionWithArg({"workers-before"}, KJ_BIND_METHOD(*this, setWorkersBefore), "N",
          "use the GPUs after those of N other workers of this host. Launcher ssh passes it")
      .addOption({"until-stdin-closes"}, flagSetter(untilStdinCloses),
          "end at once when standard input closes")
      .addOption({"launched"}, flagSetter(launched),
          "for launchers, which start roles with this option: the role reads the job's secret from "
          "standard input (without --role: from the file RUNNER_SECRET_FILE). The coordinator "
          "prints its events as lines of JSON, other roles print only what goes wrong, and the "
          "launcher records how the run ends")
      .callAfterParsing(KJ_BIND_METHOD(*this, run));
  addFileAndOverrides(builder);
  return builder.build();
}

kj::Maybe<kj::String> RoleCommand::wrongOf(Role given) const {
  bool isCoordinator = given == Role::COORDINATOR;
  if (flags.isGiven()) {
    return kj::str(
        "--job_name and the flags that belong to it say which role this is: leave out ", "--role");
  }
  if (!isCoordinator && coordinator.size() == 0) {
    return kj::str("a ", roleWord(given), " needs --coordinator ADDRESS");
  }
  if (isCoordinator && index.orDefault(0) > 0) {
    return kj::str("a coordinator takes no --index N: a job has one coordinator");
  }
  if (isCoordinator && launched && folder.size() == 0) {
    return kj::str("a coordinator of a launcher needs --folder DIR");
  }
  if (isCoordinator && coordinator.size() > 0) {
    return kj::str(
        "a coordinator takes no --coordinator ADDRESS: it listens on a free port of "
        "127.0.0.1, or where --listen ADDRESS says");
  }
  if (!isCoordinator && listen != nullptr) {
    return kj::str("only a coordinator takes --listen ADDRESS: a ", roleWord(given),
        " listens where it reaches the coordinator");
  }
  return nullptr;
}

void RoleCommand::askEnvironment(const ClusterConfig& cluster, ProcessRoles& roles) {
  auto& own = roles.first;
  RoleClues clues{&variable, {}, cluster, own.coordinator.size() > 0};
  clues.flags = kj::mv(flags);
  KJ_IF_MAYBE(given, role) {
    own.role = *given;
    if (*given == Role::COORDINATOR && !launched && own.listen == nullptr) {
      KJ_IF_MAYBE(named, cluster.interface) {
        own.listen = ListenPlace{addressOfInterface(*named), nullptr};
      }
    }
    if (index != nullptr || *given == Role::COORDINATOR) return;
    KJ_IF_MAYBE(found, indexOfPod(*given, clues)) {
      own.index = *found;
      own.isFromEnvironment = true;
      tell(kj::str("role ", roleName(own.role, own.index), " (JOB_COMPLETION_INDEX)"));
    }
    return;
  }
  if (index != nullptr) configs::fail("--index belongs to --role, which is missing");
  KJ_IF_MAYBE(found, findRole(clues)) {
    own.role = found->role;
    own.isFromEnvironment = true;
    roles.takesIndex = found->index == nullptr;
    roles.carryCoordinator = found->carriesCoordinator;
    own.index = found->index.orDefault(0);
    bool hasCoordinator = own.role == Role::COORDINATOR || roles.carryCoordinator;
    if (!hasCoordinator && found->coordinator.size() > 0) {
      own.coordinator = kj::mv(found->coordinator);
    }
    auto name = roles.takesIndex ? kj::str(roleWord(own.role)) : roleName(own.role, own.index);
    if (!launched) {
      tell(kj::str(roles.carryCoordinator ? "roles coordinator and " : "role ", name, " (",
          found->from, ")"));
    }
    if (found->meetsInFolder) meetInFolder(cluster, found->isOneHost, roles);
    KJ_IF_MAYBE(place, parseHostAndPort(found->listen)) {
      // --listen helps if this host's own address is unclear.
      if (own.listen == nullptr) {
        own.listen =
            ListenPlace{hasCoordinator ? coordinatorsHost(cluster, place->host, found->isOneHost)
                                       : ownAddressOf(place->host, found->isOneHost),
                nullptr};
      }
      auto& where = KJ_ASSERT_NONNULL(own.listen);
      if (where.ports == nullptr) where.ports = rpc::PortRange{place->port, place->port};
    }
    return;
  }
  configs::fail("this process has no role: use --role coordinator, server or worker, or start it ",
      "with a system that gives each process a role. It has looked for ", SYSTEMS);
}

void RoleCommand::meetInFolder(const ClusterConfig& cluster, bool isOneHost, ProcessRoles& roles) {
  auto& own = roles.first;
  if (own.folder.path.size() == 0) {
    configs::fail(
        "ranks find their coordinator in the run's folder: give all of them --folder DIR, ",
        "a new folder that all hosts share, or --coordinator ADDRESS of one that runs already");
  }
  own.meetsInFolder = true;
  if (own.role != Role::COORDINATOR) {
    own.listen = nullptr;  // All ranks have the same options.
    return;
  }
  if (!own.secret.isSet()) own.secret = roles.drawn = rpc::Secret::random();
  if (own.listen == nullptr && !isOneHost) {
    own.listen = ListenPlace{coordinatorsHost(cluster, thisHostName(), isOneHost), nullptr};
  }
}

Validity RoleCommand::run() {
  KJ_IF_MAYBE(given, role) {
    KJ_IF_MAYBE(why, wrongOf(*given)) return kj::mv(*why);
  }
  if (traceSteps != nullptr && folder.size() == 0) {
    return kj::str("a role leaves its trace in a folder: --folder DIR");
  }
  if ((data.folder.size() > 0) != (data.digest.size() > 0)) {
    return kj::str("--data DIR and --digest HEX belong together: launcher ssh gives both");
  }
  rpc::Secret secret;
  // A rank has no standard input of its own.
  bool isRank = role == nullptr;
  auto read = [&]() {
    secret = launched && !isRank ? secretFromLauncher(STDIN_FILENO) : secretOfUser();
  };
  KJ_IF_MAYBE(e, kj::runCatchingExceptions(read)) return reasonOf(*e);
  if (launched) kj::UnixEventPort::captureSignal(SAVE_SIGNAL);
  if (untilStdinCloses) endWithStdin();
  if (!launched) {
    nameFolderOption();
    endAtInterrupt("\ninterrupted\n");
  }
  auto loaded = load();
  ProcessRoles roles{{Role::WORKER, index.orDefault(0), kj::mv(coordinator), {kj::mv(folder)},
      traceSteps, launched, secret, kj::mv(listen)}};
  if (data.folder.size() > 0) roles.first.data = kj::mv(data);
  roles.first.workersBefore = workersBefore;
  roles.first.resumes = resumes;
  roles.first.membershipOf = kj::mv(membershipOf);
  auto& cluster = KJ_ASSERT_NONNULL(loaded.experiment).cluster;
  KJ_IF_MAYBE(e, kj::runCatchingExceptions([&]() { askEnvironment(cluster, roles); })) {
    return reasonOf(*e);
  }
  KJ_IF_MAYBE(why, runRoles(loaded, kj::mv(roles), commandLine)) return kj::mv(*why);
  return true;
}

Validity RoleCommand::setRole(kj::StringPtr word) {
  for (auto each: {Role::COORDINATOR, Role::SERVER, Role::WORKER}) {
    if (word == roleWord(each)) {
      role = each;
      return true;
    }
  }
  return kj::str("there is no role `", word, "` (coordinator, server, worker)");
}

Validity RoleCommand::setIndex(kj::StringPtr word) {
  return setNumber(word, index);
}

Validity RoleCommand::setWorkersBefore(kj::StringPtr word) {
  return setNumber(word, workersBefore);
}

Validity RoleCommand::setListen(kj::StringPtr word) {
  auto parse = [&]() { listen = parseListenPlace(word); };
  KJ_IF_MAYBE(e, kj::runCatchingExceptions(parse)) return reasonOf(*e);
  return true;
}

Validity RoleCommand::setCoordinator(kj::StringPtr word) {
  if (parseHostAndPort(word) == nullptr) {
    return kj::str("`", word,
        "` is not HOST:PORT, or [IPv6]:PORT, with a port from 1 to 65535; the coordinator "
        "says where it listens, e.g. 127.0.0.1:41234");
  }
  coordinator = kj::str(word);
  return true;
}

}  // namespace runner
