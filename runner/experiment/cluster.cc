#include "runner/experiment/cluster.h"

#include <kj/debug.h>
#include <kj/vector.h>

#include "runner/experiment/devices.h"
#include "runner/system/addresses.h"
#include "runner/text/numbers.h"
#include "runner/text/shell_word.h"

namespace runner {

namespace {

constexpr LauncherKind LAUNCHERS[] = {
    {"local", "As processes on this machine, connected over the loopback interface.",
        LauncherKind::LOCAL, true},
    {"inline",
        "As threads of one process, connected over the loopback interface. For debuggers and "
        "tests.",
        LauncherKind::INLINE, false},
    {"ssh",
        "On the machines of `hosts`, through the system's ssh, with its settings and keys. The "
        "coordinator runs on the machine of `runner run`. This program and the experiment are "
        "copied to hosts that do not have them.",
        LauncherKind::SSH, true, LauncherKind::REQUIRED},
    {"manual",
        "By hand: `runner run` starts the coordinator, prints the command for each other role, and "
        "waits for them.",
        LauncherKind::MANUAL, false, LauncherKind::OPTIONAL},
    {"kubernetes",
        "As the pods of Kubernetes Jobs, from the container image `image`. `runner run --dry-run` "
        "prints the manifest for `kubectl apply -f -`.",
        LauncherKind::KUBERNETES, false},
    {"mpi",
        "As ranks of `mpirun` (OpenMPI, or MPICH and its relatives) on `hosts`, or where `mpirun` "
        "puts them. All hosts share the folder of runs, and have the program at the same path.",
        LauncherKind::MPI, true, LauncherKind::OPTIONAL},
    {"slurm",
        "As tasks of `srun` in an allocation of Slurm. Outside of one, `runner run` submits a job, "
        "follows it, and cancels it at Ctrl-C. All nodes share the folder of runs, and have the "
        "program at the same path.",
        LauncherKind::SLURM, true},
};

constexpr InstructionSetKind INSTRUCTION_SETS[] = {
    {"auto",
        "The best instructions that the hosts of all workers have. The run's experiment.toml names "
        "them."},
    {"avx2", "AVX2, also on processors that have AVX-512."},
    {"avx512", "AVX-512. Workers on hosts without AVX-512 are refused."},
    {"avx512_amx",
        "AVX-512, and AMX for `bf16` with batches of at least 8 images per device. Hosts without "
        "AMX compute the same bits, but take several times as long."},
};

constexpr LossPolicy LOSS_POLICIES[] = {
    {"fail", "The job ends with exit code 1 and reports which role was lost and why.", false,
        false},
    {"restart",
        "All roles are started again, and continue from the newest checkpoint. In synchronous "
        "modes, the results are the same as if no role had been lost. With launcher `ssh`, the "
        "roles of a host that is gone are started on other hosts of `hosts`, if these have enough "
        "slots. The run ends if roles are lost five times in a row without any progress. A worker "
        "whose GPU fails counts as lost. A role that stops with an error, for example because a "
        "disk is full, is not a lost role: it ends the job. For launchers `local`, `ssh`, `mpi` "
        "and `slurm`. Needs checkpoints.",
        true, false},
    {"continue",
        "If a worker is lost, the others continue without it. The launcher starts a new worker in "
        "its place. The new worker joins between two steps, and in asynchronous modes not before "
        "the others have trained on the records of the lost worker. A worker that receives SIGTERM "
        "finishes its step and leaves, and the others continue in the same way. No step is "
        "repeated, but the results differ from those of a run without lost workers: see "
        "[docs/reliability.md](../docs/reliability.md#continuing-without-a-lost-worker). If a "
        "server or the coordinator is lost, or fewer than `elastic.min` workers would be left, all "
        "roles are started again, as with `restart`. For launchers `local` and `ssh`, and modes "
        "`dist_sync`, `dist_async`, `dist_ssp` and `dc_asgd`. Some other keys are refused beside "
        "it, such as `aggregate` and `checkpoint.keep_best`.",
        true, true},
};

// Reads 7000, "7000" or "7000-7031".
rpc::PortRange readPorts(configs::Reader& reader) {
  auto text = reader.maybeTextOrInteger("port",
      "The TCP ports that roles listen on: `7000` or a range such as `\"7000-7031\"`, for machines "
      "with a firewall. Each role uses the first free port. A machine needs one port for the "
      "coordinator and one for each server on it, or in `allreduce` one for each worker on it. "
      "Default: the system chooses. With launcher `kubernetes`, the coordinator listens on the "
      "first of these ports, by default 7000.");
  KJ_IF_MAYBE(word, text) {
    KJ_IF_MAYBE(ports, rpc::parsePorts(*word)) return *ports;
    reader.error("port", kj::str("`", *word, "` is not a port or a range of ports"),
        "write a number from 1 to 65535, or two such as \"7000-7031\"");
  }
  return {};
}

// Reads a command whose default is the program `key`.
kj::String readCommand(configs::Reader& reader, kj::StringPtr key, kj::StringPtr doc) {
  auto command = reader.text(key, doc, key);
  KJ_IF_MAYBE(words, wordsOfShell(command)) {
    bool hasProgram = words->size() > 0 && (*words)[0].size() > 0;
    if (!hasProgram) {
      reader.error(key, kj::str("`", key, "` does not name a program"),
          kj::str("write ", key, " = \"", key, "\""));
    }
  } else {
    reader.error(key, kj::str("`", command, "` ends within quotes, or with a backslash"),
        "close the quotes, or write a backslash before a quote that belongs to a word");
  }
  return command;
}

// Reports hosts that have fewer slots than there are workers.
void checkSlots(const ClusterConfig& config, configs::Reader& reader) {
  if (config.hosts.size() == 0 || !reader.isRight("hosts") || !reader.isRight("workers")) return;
  if (placeRoles(config.hosts, 0, 1, config.workers) != nullptr) return;
  uint64_t sum = 0;
  for (auto& host: config.hosts) sum += KJ_ASSERT_NONNULL(host.slots);
  constexpr kj::StringPtr WORKERS[] = {"workers"_kj};
  reader.error("hosts",
      kj::str("the hosts have ", counted(sum, "slot"), ", but there are ",
          counted(config.workers, "worker")),
      "raise slots=N, add hosts, or remove slots=N from a host that may take any number of workers",
      WORKERS);
}

kj::Maybe<kj::String> readInterface(configs::Reader& reader) {
  auto text = reader.maybeText("interface",
      "Where the coordinator listens if other machines must reach it: a network interface such as "
      "`\"eth0\"`, or an address of the machine of `runner run`. Default: the address from which "
      "that machine reaches the hosts. Launchers `local`, `inline` and `kubernetes` do not use "
      "it.");
  KJ_IF_MAYBE(word, text) {
    KJ_IF_MAYBE(why, whyNoInterface(*word)) {
      reader.error("interface", *why, "`ip address` shows interfaces and addresses");
    }
  }
  return text;
}

void readKubernetes(ClusterConfig& config, configs::Reader& reader) {
  config.image = reader.maybeText("image",
      "The container image with this program, for launcher `kubernetes`, such as "
      "`\"registry.example/runner:1\"`. `tools/Dockerfile` makes one.");
  config.kubernetes = reader.maybeSection("kubernetes",
      "For launcher `kubernetes`: see [docs/clusters.md](../docs/clusters.md#kubernetes).",
      KubernetesConfig::read);
  KJ_IF_MAYBE(image, config.image) {
    bool isName = image->size() > 0;
    for (char c: *image) isName = isName && c > ' ' && c <= '~' && c != '"' && c != '\'';
    if (!isName) {
      reader.error("image", kj::str("`", *image, "` cannot be the name of a container image"),
          "write image = \"registry.example/runner:1\"");
    }
  }
  if (config.launcher->word != LauncherKind::KUBERNETES) return;
  uint gpus = 0;
  for (auto& device: config.devices) gpus += isGpu(device) ? 1 : 0;
  for (auto& device: config.devices) {
    if (!isGpu(device) || targetOf(device).device < gpus) continue;
    reader.error("devices",
        kj::str("a worker's pod has only as many GPUs as this list, so it has no `", device, "`"),
        "number the GPUs of a worker from cuda:0", {"launcher"_kj});
  }
  if (config.image == nullptr || config.kubernetes == nullptr) {
    reader.error("launcher",
        "launcher `kubernetes` needs a container image and a place for the folders of runs",
        "write image = \"registry.example/runner:1\", and kubernetes = { runs = \"runs\" } with a "
        "PersistentVolumeClaim",
        {"image"_kj, "kubernetes"_kj});
  }
}

}  // namespace

RoleHosts ClusterConfig::roleHosts() const {
  KJ_REQUIRE(hosts.size() > 0);
  return KJ_ASSERT_NONNULL(placeRoles(hosts, servers, serversPerProcess, workers));
}

bool ClusterConfig::isHere() const {
  return launcher->word == LauncherKind::LOCAL || launcher->word == LauncherKind::INLINE;
}

kj::Array<kj::String> ClusterConfig::devicesOf(uint worker, kj::Maybe<uint> workersBefore) const {
  KJ_IF_MAYBE(others, workersBefore) return devicesAfter(devices, *others);
  uint localRank = 0;
  // Otherwise the worker sees only the GPUs that it was given, or all of this machine's.
  if (launcher->hosts != LauncherKind::UNUSED && hosts.size() > 0) {
    auto placed = roleHosts();
    KJ_REQUIRE(worker < placed.workers.size(), "there is no such worker", worker);
    if (hosts[placed.workers[worker]].slots != nullptr) localRank = placed.localRanks[worker];
  }
  return devicesAfter(devices, localRank);
}

kj::String ClusterConfig::roles() const {
  if (servers == 0) return kj::str(counted(workers, "worker"), ", no servers");
  return kj::str(counted(servers, "server"), " and ", counted(workers, "worker"));
}

uint ClusterConfig::serversOfProcess(uint first) const {
  if (first >= servers || first % serversPerProcess != 0) return 0;
  return kj::min(serversPerProcess, servers - first);
}

ElasticConfig ElasticConfig::read(configs::Reader& reader, uint workers) {
  ElasticConfig config;
  config.min = reader.integer("min",
      "The fewest workers with which the job continues. With fewer, all roles are started again "
      "from the newest checkpoint.",
      {.atLeast = 1, .atMost = 4096}, 1);
  auto max = reader.maybeInteger("max",
      "The largest number of workers that the job may have. Default: `workers`. With launcher "
      "`local`, a larger number lets `runner scale` add workers. Launcher `ssh` refuses a larger "
      "number.",
      {.atLeast = 1, .atMost = 4096});
  config.max = max.map([](int64_t n) { return uint(n); }).orDefault(workers);
  if (config.min > workers && reader.isRight("min")) {
    reader.error("min",
        kj::str("`min` is more than the ", counted(workers, "worker"), " that the job begins with"),
        "make `min` smaller, or raise cluster.workers");
  }
  if (config.max < workers && reader.isRight("max")) {
    reader.error("max",
        kj::str("`max` is less than the ", counted(workers, "worker"), " that the job begins with"),
        "make `max` larger, or leave it out");
  }
  return config;
}

ClusterConfig ClusterConfig::read(configs::Reader& reader, const rpc::KvStoreConfig& kvstore) {
  ClusterConfig config;
  config.launcher = &reader.choose("launcher", "How the roles are started.",
      kj::arrayPtr(LAUNCHERS, kj::size(LAUNCHERS)), kj::StringPtr("local"));
  config.servers = reader.integer("servers",
      "Number of servers. The parameters are divided among them. Default: 1 if the mode has "
      "servers, otherwise 0.",
      {.atLeast = 0, .atMost = 1024}, kvstore.hasServers() ? 1 : 0);
  auto shared = reader.maybeInteger("servers_per_process",
      "Number of servers that share a process, each in its own thread. For machines with spare "
      "cores. Does not change results. Default: each server has its own process.",
      {.atLeast = 1, .atMost = 1024});
  // Roles that are threads share a process anyway.
  bool apart = config.launcher->word == LauncherKind::INLINE || shared == nullptr;
  config.serversPerProcess = apart ? 1 : uint(KJ_ASSERT_NONNULL(shared));
  config.workers =
      reader.integer("workers", "Number of worker processes.", {.atLeast = 1, .atMost = 4096}, 1);
  config.threadsPerWorker = reader.integer("threads_per_worker",
      "Threads per device of a worker. They divide the work on the device's batch among "
      "themselves. The sums of weight gradients depend on this number, so it is part of the "
      "experiment.",
      {.atLeast = 1, .atMost = 256}, 1);
  constexpr kj::StringPtr ONE_DEVICE[] = {"cpu"_kj};
  config.devices = reader.texts("devices",
      "The devices of each worker. Each of `\"cpu\"`, `\"cpu:1\"`, … computes with its own "
      "`threads_per_worker` threads. `\"cuda:N\"` is a GPU: see `runner devices`. A worker divides "
      "its batch into equal parts, one per device. The last device also gets the images that are "
      "left over. Batch norm is computed over the part of one device. Several devices need a "
      "`kvstore.mode` other than `local`. With launcher `local`, all workers use the same GPUs. "
      "With `slots` in `hosts`, the first worker of a host uses the GPUs named here, and each "
      "further worker uses the next ones, the same number per worker.",
      ONE_DEVICE);
  config.devicesSpan = reader.span("devices");
  auto& set = reader.choose("instruction_set",
      "The instructions that all workers use on processors. The bits of the weights depend on "
      "them. Because all workers use the same ones, hosts with different processors give the same "
      "bits as identical hosts.",
      kj::arrayPtr(INSTRUCTION_SETS, kj::size(INSTRUCTION_SETS)), AUTO_INSTRUCTION_SET);
  config.instructionSet = set.name;
  config.onLoss = &reader.choose("on_loss", "What happens when a role is lost.",
      kj::arrayPtr(LOSS_POLICIES, kj::size(LOSS_POLICIES)), kj::StringPtr("fail"));
  config.elastic = {1, config.workers};
  KJ_IF_MAYBE(elastic,
      reader.maybeSection("elastic", "How many workers a job with on_loss = \"continue\" may have.",
          [&](configs::Reader& section) { return ElasticConfig::read(section, config.workers); })) {
    config.elastic = *elastic;
    if (!config.onLoss->continues) {
      reader.error("elastic", "`elastic` has no effect without on_loss = \"continue\"",
          "write on_loss = \"continue\", or leave `elastic` out", {"on_loss"_kj});
    }
  }
  config.ssh = readCommand(reader, "ssh",
      "The command of launcher `ssh`, which may have options: `\"ssh -i ~/key\"`. The command is "
      "split into words as in a shell, with quotes, backslashes and `~`. Nothing else is "
      "expanded.");
  config.ports = readPorts(reader);
  config.hosts = readHosts(reader);
  if (config.launcher->hosts == LauncherKind::REQUIRED && config.hosts.size() == 0 &&
      reader.isRight("hosts")) {
    reader.error("launcher", kj::str("launcher `", config.launcher->name, "` needs hosts"),
        "name them, such as hosts = [\"node1\", \"node2\"]");
  }
  checkSlots(config, reader);
  config.interface = readInterface(reader);
  readKubernetes(config, reader);
  config.tls = reader.flag("tls",
      "Encrypts all TCP connections of the job (TLS 1.3). The keys come from the job's secret, so "
      "there are no certificates. Without TLS, strangers cannot join the job, but whoever controls "
      "the network between two hosts can read and change the data. Does not change results.",
      false);
  config.mpirun = readCommand(reader, "mpirun",
      "The command of launcher `mpi`, which may have options. It is split into words in the same "
      "way as `ssh`.");
  config.startTimeout_s = reader.integer("start_timeout_s",
      "Seconds within which all roles must join. Otherwise the job fails, and the message names "
      "the missing roles.",
      {.atLeast = 1, .atMost = 86400}, START_TIMEOUT_S);
  config.silenceTimeout_s = reader.integer("silence_timeout_s",
      "A role counts as lost if it sends nothing for this many seconds. Its io thread sends "
      "heartbeats, also during long steps. One exception: a server that computes a single update "
      "for this long counts as lost, for example with muon and a very large weight. Time in which "
      "the whole job is stopped does not count. If a worker's connection to a server carries "
      "nothing for half of this time, the worker reconnects. If it cannot reach the server for the "
      "whole time, the server counts as lost.",
      {.atLeast = 1, .atMost = 3600}, SILENCE_TIMEOUT_S);
  config.stallTimeout_s = reader.integer("stall_timeout_s",
      "A worker counts as lost if it reads or computes for this many seconds without finishing a "
      "piece of its work: opening the data, preparing its devices, reading a batch, a layer's "
      "forward or backward pass, a batch of a validation. The usual cause is that its GPU, or the "
      "file system with its images, hangs. Time in which the worker waits for other roles does not "
      "count. With 0, there is no limit.",
      {.atLeast = 0, .atMost = 86400}, 600);
  return config;
}

}  // namespace runner
