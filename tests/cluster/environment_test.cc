// Roles that other systems start, by their variables or flags: whole jobs, with no other option
// than the file. They train the same bits as `runner run`, whatever order the roles start in.
#include <doctest/doctest.h>
#include <kj/debug.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/faults/failure.h"
#include "tests/faults/roles_by_hand.h"
#include "tests/run.h"
#include "tests/text.h"

namespace tests {
namespace {

constexpr kj::StringPtr SHORT = "tests/faults/short.toml"_kj;

// The processes of one job.
class Job {
public:
  // Runs `file` with these numbers of servers and workers by `runner run`. The job uses its
  // resolved file, so that no role needs an option.
  Job(kj::StringPtr servers, kj::StringPtr workers)
      : launched(train(SHORT, {servers, workers})),
        file(kj::str(launched.folder, "/experiment.toml")) {}

  // Starts a process with these variables, and with these options after the file.
  Command& start(
      kj::ArrayPtr<const kj::StringPtr> environment, kj::ArrayPtr<const kj::StringPtr> more = {}) {
    kj::Vector<kj::StringPtr> words;
    words.add(file);
    words.addAll(more);
    return *processes.add(startByHand(words, environment));
  }

  // Starts a process, and waits until it has said that it waits for the coordinator.
  Command& startEarly(
      kj::ArrayPtr<const kj::StringPtr> environment, kj::ArrayPtr<const kj::StringPtr> more = {}) {
    auto& process = start(environment, more);
    REQUIRE(process.waitForErrors(" waits for the coordinator"));
    return process;
  }

  // Waits until all processes have ended well. `coordinator` is the one that prints the weights.
  void checkBits(Command& coordinator) {
    for (auto& process: processes) {
      auto ended = process->wait();
      INFO(ended.errors);
      CHECK(ended.exitCode == 0);
      bool isCoordinator = process == &coordinator;
      CHECK(contains(ended.output, launched.weightsSha256) == isCoordinator);
    }
  }

  const Trained launched;
  const kj::String file;
  kj::Vector<kj::Own<Command>> processes;
};

struct TfConfig {
  // `cluster` is what the braces of the object contain.
  TfConfig(kj::StringPtr cluster, kj::StringPtr type, uint index)
      : text(kj::str("TF_CONFIG={\"cluster\": {", cluster, "}, \"task\": {\"type\": \"", type,
            "\", \"index\": ", index, "}}")),
        setting(text) {}

  operator kj::ArrayPtr<const kj::StringPtr>() const { return kj::arrayPtr(&setting, 1); }

  kj::String text;
  kj::StringPtr setting;
};

TEST_CASE("TF_CONFIG: a chief, two workers and a ps train the same weights as runner run") {
  Job job("cluster.servers=1", "cluster.workers=3");
  auto cluster = kj::str("\"chief\": [\"", ownPlace(), "\"], \"worker\": [\"", ownPlace(), "\", \"",
      ownPlace(), "\"], \"ps\": [\"", ownPlace(), "\"]");
  auto& last = job.startEarly(TfConfig(cluster, "worker", 1));
  CHECK(contains(last.errors(), "role worker 2 (TF_CONFIG: worker 1 of 2)\n"));
  job.startEarly(TfConfig(cluster, "ps", 0));
  auto& chief = job.start(TfConfig(cluster, "chief", 0), {"--folder", newFolder()});
  job.start(TfConfig(cluster, "worker", 0));
  job.checkBits(chief);
  CHECK(contains(chief.errors(), "roles coordinator and worker 0 (TF_CONFIG: chief)\n"));
}

TEST_CASE("TF_CONFIG: a chief, a worker and two ps are the two workers and two servers of a file") {
  Job job("cluster.servers=2", "cluster.workers=2");
  auto server = ownPlace();
  auto cluster = kj::str("\"chief\": [\"", ownPlace(), "\"], \"worker\": [\"", ownPlace(),
      "\"], \"ps\": [\"", ownPlace(), "\", \"", server, "\"]");
  auto folder = newFolder();
  auto& chief = job.start(TfConfig(cluster, "chief", 0), {"--folder", folder});
  job.start(TfConfig(cluster, "worker", 0));
  job.start(TfConfig(cluster, "ps", 1));
  job.start(TfConfig(cluster, "ps", 0));
  job.checkBits(chief);
  // A server listens where the cluster says.
  CHECK(contains(readFile(kj::str(folder, "/events.jsonl")),
      kj::str("\"joined\":{\"address\":\"", server, "\"")));
}

TEST_CASE("TF_CONFIG: without a chief, worker 0 also runs the coordinator") {
  Job job("cluster.servers=1", "cluster.workers=2");
  auto cluster = kj::str(
      "\"worker\": [\"", ownPlace(), "\", \"", ownPlace(), "\"], \"ps\": [\"", ownPlace(), "\"]");
  job.startEarly(TfConfig(cluster, "worker", 1));
  auto& first = job.start(TfConfig(cluster, "worker", 0), {"--folder", newFolder()});
  job.start(TfConfig(cluster, "ps", 0));
  job.checkBits(first);
}

// Variables of one DMLC process.
struct Dmlc {
  Dmlc(kj::StringPtr place, kj::StringPtr role, kj::StringPtr servers, kj::StringPtr workers,
      kj::StringPtr more = "DMLC_LOCAL=") {
    auto colon = KJ_ASSERT_NONNULL(place.findLast(':'));
    texts = kj::arr(kj::str("DMLC_PS_ROOT_URI=", place.slice(0, colon)),
        kj::str("DMLC_PS_ROOT_PORT=", place.slice(colon + 1)), kj::str("DMLC_ROLE=", role),
        kj::str("DMLC_NUM_SERVER=", servers), kj::str("DMLC_NUM_WORKER=", workers), kj::str(more));
    settings = KJ_MAP(text, texts)->kj::StringPtr {
      return text;
    };
  }

  operator kj::ArrayPtr<const kj::StringPtr>() const { return settings; }

  kj::Array<kj::String> texts;
  kj::Array<kj::StringPtr> settings;
};

TEST_CASE("DMLC_*: a scheduler, a server and two workers without indices train the same bits") {
  Job job("cluster.servers=1", "cluster.workers=2");
  auto place = ownPlace();
  auto& worker = job.startEarly(Dmlc(place, "worker", "1", "2"));
  CHECK(contains(worker.errors(), "role worker (DMLC_ROLE=worker)\n"));
  job.start(Dmlc(place, "server", "1", "2"));
  auto& scheduler = job.start(Dmlc(place, "scheduler", "1", "2"), {"--folder", newFolder()});
  REQUIRE(worker.waitForErrors(kj::str("worker 0 joined the job at ", place)));
  auto& second = job.start(Dmlc(place, "worker", "1", "2"));
  REQUIRE(second.waitForErrors(kj::str("worker 1 joined the job at ", place)));
  job.checkBits(scheduler);
}

TEST_CASE("DMLC_*: with indices, three workers have those ranks") {
  Job job("cluster.servers=1", "cluster.workers=3");
  auto place = ownPlace();
  for (auto id: {"DMLC_WORKER_ID=2", "DMLC_WORKER_ID=0", "DMLC_WORKER_ID=1"}) {
    auto& worker = job.startEarly(Dmlc(place, "worker", "1", "3", id));
    CHECK(contains(worker.errors(), kj::str("role worker ", id[15], " (DMLC_ROLE=worker ", id)));
  }
  job.start(Dmlc(place, "server", "1", "3", "DMLC_SERVER_ID=0"));
  job.checkBits(job.start(Dmlc(place, "scheduler", "1", "3"), {"--folder", newFolder()}));
}

TEST_CASE("DMLC_*: a worker too many is refused, and the job continues") {
  Job job("cluster.servers=1", "cluster.workers=1");
  auto place = ownPlace();
  auto& scheduler = job.start(Dmlc(place, "scheduler", "1", "1"), {"--folder", newFolder()});
  auto& worker = job.start(Dmlc(place, "worker", "1", "1"));
  REQUIRE(worker.waitForErrors("worker 0 joined the job"));
  kj::StringPtr words[] = {job.file};
  auto second = startByHand(words, Dmlc(place, "worker", "1", "1"))->wait();
  CHECK(second.exitCode == 1);
  CHECK(contains(second.errors,
      "error: this job has 1 worker, and all places are taken: start one worker fewer"));
  job.start(Dmlc(place, "server", "1", "1"));
  job.checkBits(scheduler);
}

TEST_CASE("the flags of TensorFlow's examples: a ps and two workers train the same bits") {
  Job job("cluster.servers=1", "cluster.workers=2");
  auto servers = kj::str("--ps_hosts=", ownPlace());
  auto workers = kj::str("--worker_hosts=", ownPlace(), ",", ownPlace());
  job.startEarly({}, {servers, workers, "--job_name=worker", "--task_index=1"});
  job.startEarly({}, {servers, workers, "--job_name=ps", "--task_index=0"});
  job.checkBits(job.start(
      {}, {servers, workers, "--job_name=worker", "--task_index=0", "--folder", newFolder()}));
}

// Variables of one rank.
struct Rank {
  Rank(kj::ArrayPtr<const kj::StringPtr> names, uint rank, uint size)
      : texts(kj::arr(kj::str(names[0], "=", rank), kj::str(names[1], "=", size),
            kj::str(names[2], "=", names[2] == "SLURM_NNODES" ? 1 : size))),
        settings(KJ_MAP(text, texts)->kj::StringPtr { return text; }) {}

  operator kj::ArrayPtr<const kj::StringPtr>() const { return settings; }

  kj::Array<kj::String> texts;
  kj::Array<kj::StringPtr> settings;
};

using Names = kj::StringPtr[3];

constexpr Names OPEN_MPI = {
    "OMPI_COMM_WORLD_RANK"_kj, "OMPI_COMM_WORLD_SIZE"_kj, "OMPI_COMM_WORLD_LOCAL_SIZE"_kj};
constexpr Names MPICH = {"PMI_RANK"_kj, "PMI_SIZE"_kj, "MPI_LOCALNRANKS"_kj};
constexpr Names SLURM = {"SLURM_PROCID"_kj, "SLURM_NTASKS"_kj, "SLURM_NNODES"_kj};

TEST_CASE("OpenMPI, MPICH and Slurm: ranks meet in a folder, and train the same bits") {
  Job job("cluster.servers=1", "cluster.workers=2");
  for (auto row: {&OPEN_MPI, &MPICH, &SLURM}) {
    auto& names = *row;
    INFO(names[0]);
    job.processes.clear();
    auto folder = kj::str(newFolder(), "/run");
    for (uint rank: {3, 1}) {
      auto& process = job.startEarly(Rank(names, rank, 4), {"--folder", folder});
      CHECK(contains(process.errors(), kj::str(" waits for the coordinator whose address is in ",
                                           folder, "/address (there is no such file yet)\n")));
    }
    auto& coordinator = job.start(Rank(names, 0, 4), {"--folder", folder});
    job.start(Rank(names, 2, 4), {"--folder", folder});
    job.checkBits(coordinator);
    // The file with the secret was removed.
    CHECK(::access(kj::str(folder, "/address").cStr(), F_OK) != 0);
  }
}

TEST_CASE("ranks: an address that a killed coordinator has left is read again") {
  Job job("cluster.servers=1", "cluster.workers=1");
  auto folder = newFolder();
  auto file = kj::str(folder, "/address");
  auto stale = ownPlace();
  writeFile(file, kj::str(stale, "\n", kj::repeat('a', 64), "\n"));
  KJ_SYSCALL(::chmod(file.cStr(), 0600));
  for (uint rank: {2, 1}) {
    auto& process = job.startEarly(Rank(OPEN_MPI, rank, 3), {"--folder", folder});
    CHECK(contains(process.errors(), "(Connection refused)"));
  }
  job.checkBits(job.start(Rank(OPEN_MPI, 0, 3), {"--folder", folder}));
}

TEST_CASE("ranks: only roles that know the secret in the folder can join") {
  Job job("cluster.servers=1", "cluster.workers=1");
  auto folder = newFolder();
  auto place = ownPlace();
  auto& coordinator = job.start(Rank(OPEN_MPI, 0, 3), {"--folder", folder, "--listen", place});
  REQUIRE(coordinator.waitForErrors(kj::str("coordinator listens on ", place)));
  auto stranger = startRole(job.file, "worker", 0, place)->wait(FAILS_WITHIN_S);
  CHECK(stranger.exitCode == 1);
  CHECK(contains(stranger.errors, "has a different secret than this role"));
  for (uint rank: {1, 2}) {
    job.start(Rank(OPEN_MPI, rank, 3), {"--folder", folder, "--listen", place});
  }
  job.checkBits(coordinator);
}

TEST_CASE("ranks: without --folder they cannot meet, and the message says so") {
  auto ended = startByHand({SHORT}, Rank(OPEN_MPI, 1, 5))->wait(FAILS_WITHIN_S);
  CHECK(ended.exitCode == 2);
  CHECK(contains(ended.errors, "ranks find their coordinator in the run's folder: give all of "));
}

TEST_CASE("ranks: if the coordinator runs elsewhere, they are only servers and workers") {
  Job job("cluster.servers=1", "cluster.workers=2");
  auto place = ownPlace();
  for (uint rank: {2, 0, 1}) {
    job.startEarly(Rank(SLURM, rank, 3), {"--coordinator", place});
  }
  job.checkBits(
      job.start({}, {"--role", "coordinator", "--listen", place, "--folder", newFolder()}));
}

TEST_CASE("Kubernetes: an indexed Job gives servers and workers their indices") {
  Job job("cluster.servers=1", "cluster.workers=2");
  auto place = ownPlace();
  auto& second =
      job.startEarly({"JOB_COMPLETION_INDEX=1"}, {"--role", "worker", "--coordinator", place});
  CHECK(contains(second.errors(), "role worker 1 (JOB_COMPLETION_INDEX)\n"));
  job.start({"JOB_COMPLETION_INDEX=0"}, {"--role", "worker", "--coordinator", place});
  job.start({"JOB_COMPLETION_INDEX=0"}, {"--role", "server", "--coordinator", place});
  job.checkBits(job.start({"JOB_COMPLETION_INDEX=0"},
      {"--role", "coordinator", "--listen", place, "--folder", newFolder()}));
}

TEST_CASE("a coordinator from the environment makes a new folder below runs") {
  Job job("cluster.servers=1", "cluster.workers=1");
  auto place = ownPlace();
  auto cache = cacheSetting();
  Dmlc variables(place, "scheduler", "1", "1");
  kj::Vector<kj::StringPtr> environment;
  environment.add(cache);
  environment.addAll(variables.settings);
  auto folder = newFolder();
  auto program = Command({"realpath", RUNNER}).wait().output;
  kj::String path = kj::heapString(program.slice(0, program.size() - 1));
  Command scheduler(kj::arr<kj::StringPtr>(path, "role", job.file),
      {.folder = folder, .environment = environment});
  job.start(Dmlc(place, "server", "1", "1"));
  job.start(Dmlc(place, "worker", "1", "1"));
  auto ended = scheduler.wait();
  INFO(ended.errors);
  CHECK(ended.exitCode == 0);
  CHECK(contains(ended.output, kj::str(job.launched.weightsSha256, "  runs/short/1\n")));
}

// An endless job of a chief, which is worker 0, another worker and a ps.
struct Endless {
  Endless()
      : cluster(kj::str("\"chief\": [\"", ownPlace(), "\"], \"worker\": [\"", ownPlace(),
            "\"], \"ps\": [\"", ownPlace(), "\"]")) {
    auto start = [&](kj::StringPtr type, kj::StringPtr folder) {
      return startByHand(
          {ENDLESS, "--set", "cluster.servers=1", "--folder", folder}, TfConfig(cluster, type, 0));
    };
    chief = start("chief", folder);
    worker = start("worker", newFolder());
    server = start("ps", newFolder());
  }

  const kj::String cluster;
  const kj::String folder = newFolder();
  kj::Own<Command> chief, worker, server;
};

TEST_CASE(
    "a process that runs a coordinator and a worker ends with exit code 1 if a role is lost") {
  Endless job;
  REQUIRE(job.chief->waitForOutput("Batch [20]"));
  job.worker->kill(SIGKILL);
  auto ended = job.chief->wait(FAILS_WITHIN_S);
  CHECK(ended.exitCode == 1);
  CHECK(contains(ended.errors, "error: worker 1 closed its connection without giving a reason"));
  CHECK(job.server->wait(FAILS_WITHIN_S).exitCode == 75);
}

TEST_CASE("a process that runs a coordinator and a worker names the worker's failure once") {
  auto cluster = kj::str("\"chief\": [\"", ownPlace(), "\"], \"ps\": [\"", ownPlace(), "\"]");
  auto folder = newFolder();
  auto start = [&](kj::StringPtr type) {
    return startByHand({ENDLESS, "--set", "cluster.servers=1", "--set", "cluster.workers=1",
                           "--set", "data.augment={ deviation = [1e-300] }", "--folder", folder},
        TfConfig(cluster, type, 0));
  };
  auto chief = start("chief"), server = start("ps");
  auto ended = chief->wait();
  INFO(ended.errors);
  CHECK(ended.exitCode == 1);
  auto lines = errorLines(ended.errors);
  REQUIRE(lines.size() == 1);
  CHECK(contains(lines[0], "error: worker 0: the loss is "));
  CHECK(contains(readFile(kj::str(folder, "/events.jsonl")), "worker 0: the loss is "));
  CHECK(server->wait(FAILS_WITHIN_S).exitCode == 75);
}

TEST_CASE("a process that runs a coordinator and a worker ends with 130 at Ctrl-C") {
  Endless job;
  REQUIRE(job.chief->waitForOutput("Batch [20]"));
  job.chief->kill(SIGINT);
  auto ended = job.chief->wait(FAILS_WITHIN_S);
  INFO(ended.errors);
  CHECK(ended.exitCode == 130);
  CHECK(contains(readFile(kj::str(job.folder, "/events.jsonl")), "received SIGINT (Ctrl-C)"));
  CHECK(job.worker->wait(FAILS_WITHIN_S).exitCode == 75);
  CHECK(job.server->wait(FAILS_WITHIN_S).exitCode == 75);
}

TEST_CASE("an environment that is wrong, or gives no role, ends a role with exit code 2") {
  auto refuse = [](kj::StringPtr setting, kj::StringPtr why) {
    auto ended = startByHand({SHORT}, kj::arrayPtr(&setting, 1))->wait(FAILS_WITHIN_S);
    INFO(ended.errors);
    CHECK(ended.exitCode == 2);
    CHECK(contains(ended.errors, why));
  };
  refuse("TF_CONFIG={", "TF_CONFIG is not JSON: JSON message ends prematurely. Write ");
  refuse("DMLC_ROLE=worker", "DMLC_PS_ROOT_URI is not set, but DMLC_ROLE is");
  refuse("DMLC_ROLE=", "this process has no role: use --role coordinator, server or worker");
}

}  // namespace
}  // namespace tests
