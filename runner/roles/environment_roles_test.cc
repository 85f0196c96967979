#include "runner/roles/environment_roles.h"

#include <doctest/doctest.h>
#include <kj/map.h>

#include "runner/logs/role_names.h"
#include "runner/system/reason.h"
#include "tests/text.h"

namespace runner {
namespace {

using tests::contains;

// One variable, or one flag of TaskFlags.
struct Setting {
  kj::StringPtr name;
  kj::StringPtr value;
};

struct Job {
  uint servers = 1;
  uint workers = 3;
  uint serversPerProcess = 1;
  bool isCoordinatorGiven = false;
};

kj::Maybe<FoundRole> find(kj::ArrayPtr<const Setting> settings, Job job = {}) {
  ClusterConfig cluster{};
  cluster.servers = job.servers;
  cluster.workers = job.workers;
  cluster.serversPerProcess = job.serversPerProcess;
  auto value = [&](kj::StringPtr name) -> kj::Maybe<kj::StringPtr> {
    for (auto& setting: settings) {
      if (setting.name == name) return setting.value;
    }
    return nullptr;
  };
  auto flag = [&](kj::StringPtr name) { return kj::str(value(name).orDefault("")); };
  RoleClues clues{value,
      {flag("--ps_hosts"), flag("--worker_hosts"), flag("--job_name"), flag("--task_index")},
      cluster, job.isCoordinatorGiven};
  return findRole(clues);
}

// "coordinator and worker 0 listens at a:1, coordinator at a:1 (TF_CONFIG: chief)".
kj::String described(kj::ArrayPtr<const Setting> settings, Job job = {}) {
  KJ_IF_MAYBE(found, find(settings, job)) {
    kj::String name = kj::str(roleWord(found->role));
    KJ_IF_MAYBE(index, found->index) name = roleName(found->role, *index);
    auto part = [](kj::StringPtr before, kj::StringPtr text) {
      return text.size() == 0 ? kj::str() : kj::str(before, text);
    };
    return kj::str(found->carriesCoordinator ? "coordinator and " : "", name,
        part(" listens at ", found->listen), part(", coordinator at ", found->coordinator),
        found->meetsInFolder ? ", meets in the folder" : "",
        found->isOneHost ? ", on one host" : "", " (", found->from, ")");
  }
  return kj::str("none");
}

kj::String refusal(kj::ArrayPtr<const Setting> settings, Job job = {}) {
  KJ_IF_MAYBE(e, kj::runCatchingExceptions([&]() { find(settings, job); })) {
    return reasonOf(*e);
  }
  return kj::str("accepted");
}

kj::String tfConfig(kj::StringPtr cluster, kj::StringPtr task) {
  return kj::str("{\"cluster\": {", cluster, "}, \"task\": {", task, "}}");
}

constexpr kj::StringPtr CHIEF =
    "\"chief\": [\"a:1\"], \"worker\": [\"b:1\", \"c:1\"], \"ps\": [\"d:1\"]"_kj;
constexpr kj::StringPtr WORKERS = "\"worker\": [\"a:1\", \"a:2\", \"a:3\"], \"ps\": [\"a:4\"]"_kj;

kj::String byTask(kj::StringPtr cluster, kj::StringPtr task, Job job = {}) {
  return described({{"TF_CONFIG", tfConfig(cluster, task)}}, job);
}

kj::String refusedTask(kj::StringPtr cluster, kj::StringPtr task, Job job = {}) {
  return refusal({{"TF_CONFIG", tfConfig(cluster, task)}}, job);
}

TEST_CASE("TF_CONFIG: the chief is coordinator and worker 0, and workers follow it") {
  CHECK(byTask(CHIEF, "\"type\": \"chief\", \"index\": 0") ==
        "coordinator and worker 0 listens at a:1, coordinator at a:1 (TF_CONFIG: chief)");
  CHECK(byTask(CHIEF, "\"type\": \"worker\", \"index\": 1") ==
        "worker 2 listens at c:1, coordinator at a:1 (TF_CONFIG: worker 1 of 2)");
  CHECK(byTask(CHIEF, "\"type\": \"ps\", \"index\": 0") ==
        "server 0 listens at d:1, coordinator at a:1 (TF_CONFIG: ps 0 of 1)");
}

TEST_CASE("TF_CONFIG: master is an old name of chief, and an index may be a text") {
  CHECK(byTask("\"master\": [\"a:1\"], \"worker\": [\"b:1\", \"c:1\"], \"ps\": [\"d:1\"]",
            "\"type\": \"master\", \"index\": \"0\"") ==
        "coordinator and worker 0 listens at a:1, coordinator at a:1 (TF_CONFIG: chief)");
}

TEST_CASE("TF_CONFIG: without a chief, worker 0 also runs the coordinator") {
  CHECK(byTask(WORKERS, "\"type\": \"worker\", \"index\": 0") ==
        "coordinator and worker 0 listens at a:1, coordinator at a:1, on one host (TF_CONFIG: "
        "worker 0 of 3)");
  CHECK(byTask(WORKERS, "\"type\": \"worker\", \"index\": 2") ==
        "worker 2 listens at a:3, coordinator at a:1, on one host (TF_CONFIG: worker 2 of 3)");
}

TEST_CASE("TF_CONFIG: an evaluator is refused with the command to use") {
  auto why = refusedTask(CHIEF, "\"type\": \"evaluator\", \"index\": 0");
  CHECK(contains(why, "TF_CONFIG: this job needs no evaluator"));
  CHECK(contains(why, "`runner table FOLDER`"));
}

TEST_CASE("TF_CONFIG: if its counts differ from the file, the message says which --set to use") {
  auto task = "\"type\": \"chief\", \"index\": 0"_kj;
  CHECK(refusedTask(CHIEF, task, {.servers = 2, .workers = 2}) ==
        "TF_CONFIG: 1 server and 3 workers, but the file asks for 2 servers and 2 workers. Start "
        "every role with --set cluster.workers=3 --set cluster.servers=1, or change TF_CONFIG");
  CHECK(contains(refusedTask(CHIEF, task, {.servers = 1, .workers = 2}),
      "Start every role with --set cluster.workers=3, or"));
  CHECK(refusedTask("\"worker\": [\"a:1\"]", "\"type\": \"worker\", \"index\": 0",
            {.servers = 1, .workers = 1}) ==
        "TF_CONFIG: there is no server, but the file asks for 1 server and 1 worker. Add servers "
        "to TF_CONFIG, or choose a kvstore.mode without servers");
  CHECK(refusedTask(CHIEF, task, {.servers = 0, .workers = 3}) ==
        "TF_CONFIG: 1 server, but the kvstore.mode of the file has none. Leave the servers out of "
        "TF_CONFIG");
}

TEST_CASE("TF_CONFIG: a message about a mistake names its place") {
  auto refused = [](kj::StringPtr text, kj::StringPtr why) {
    INFO(text);
    auto said = refusal({{"TF_CONFIG", text}});
    INFO(said);
    CHECK(contains(said, why));
  };
  refused("{\"cluster\": ", "TF_CONFIG is not JSON: ");
  refused("[1]", "TF_CONFIG has no object `cluster`: ");
  refused("{\"cluster\": {}}", "TF_CONFIG has no object `task`: ");
  refused(tfConfig(CHIEF, "\"index\": 0"), "task.type is missing");
  refused(tfConfig(CHIEF, "\"type\": \"worker\""), "task.index is missing");
  refused(
      tfConfig(CHIEF, "\"type\": \"worker\", \"index\": -1"), "task.index is not a whole number");
  refused(tfConfig(CHIEF, "\"type\": \"worker\", \"index\": 0.5"), "task.index is not a whole ");
  refused(tfConfig(CHIEF, "\"type\": \"worker\", \"index\": 2"),
      "task.index is 2, but the cluster has 2 of type worker: write a number from 0 to 1");
  refused(tfConfig(CHIEF, "\"type\": \"helper\", \"index\": 0"), "there is no task type `helper`");
  refused(tfConfig(WORKERS, "\"type\": \"chief\", \"index\": 0"),
      "task.index is 0, but the cluster has no chief");
  refused(tfConfig("\"ps\": [\"a:1\"]", "\"type\": \"ps\", \"index\": 0"),
      "the cluster has no worker: add one, or a chief");
  refused(tfConfig("\"worker\": \"a:1\"", "\"type\": \"worker\", \"index\": 0"),
      "cluster.worker is not a list of HOST:PORT");
  refused(tfConfig("\"worker\": [1]", "\"type\": \"worker\", \"index\": 0"),
      "cluster.worker has an entry that is not a text");
  refused(tfConfig("\"worker\": [\"a\"]", "\"type\": \"worker\", \"index\": 0"),
      "worker 0 is at `a`, which is not HOST:PORT");
  refused(tfConfig("\"chief\": [\"a:1\", \"b:1\"]", "\"type\": \"chief\", \"index\": 0"),
      "more than one chief");
}

TEST_CASE("flags of TensorFlow's examples: worker 0 also runs the coordinator") {
  auto find = [](kj::StringPtr job, kj::StringPtr index) {
    return described({{"--ps_hosts", "a:1"}, {"--worker_hosts", "b:1, c:1"}, {"--job_name", job},
                         {"--task_index", index}},
        {.workers = 2});
  };
  CHECK(find("ps", "0") ==
        "server 0 listens at a:1, coordinator at b:1 (--job_name=ps --task_index=0)");
  CHECK(find("worker", "0") ==
        "coordinator and worker 0 listens at b:1, coordinator at b:1 (--job_name=worker "
        "--task_index=0)");
  CHECK(find("worker", "1") ==
        "worker 1 listens at c:1, coordinator at b:1 (--job_name=worker --task_index=1)");
}

TEST_CASE("flags of TensorFlow's examples: a missing or wrong flag is named") {
  CHECK(contains(refusal({{"--ps_hosts", "a:1"}}), "--worker_hosts is missing: "));
  CHECK(contains(
      refusal({{"--worker_hosts", "a:1"}, {"--job_name", "ps"}}), "--task_index is missing: "));
  CHECK(contains(
      refusal({{"--worker_hosts", "a:1"}, {"--job_name", "worker"}, {"--task_index", "x"}}),
      "--task_index is `x`, which is not a whole number from 0"));
  CHECK(contains(
      refusal({{"--worker_hosts", "a:1"}, {"--job_name", "worker"}, {"--task_index", "1"}}),
      "--task_index is 1, but the cluster has 1 of type worker: "));
  CHECK(contains(refusal({{"--ps_hosts", "a:1,b:1"}, {"--worker_hosts", "c:1"},
                     {"--job_name", "worker"}, {"--task_index", "0"}}),
      "Start every role with --set cluster.workers=1 --set cluster.servers=2"));
}

// The four variables that every DMLC process has, and more.
kj::Array<Setting> dmlc(kj::StringPtr role, std::initializer_list<Setting> more = {}) {
  kj::Vector<Setting> all;
  all.add(Setting{"DMLC_ROLE", role});
  all.addAll(more);
  all.add(Setting{"DMLC_PS_ROOT_URI", "10.0.0.4"});
  all.add(Setting{"DMLC_PS_ROOT_PORT", "9091"});
  all.add(Setting{"DMLC_NUM_SERVER", "1"});
  all.add(Setting{"DMLC_NUM_WORKER", "3"});
  return all.releaseAsArray();
}

TEST_CASE(
    "DMLC: the scheduler is the coordinator, and other roles get their index when they join") {
  CHECK(described(dmlc("scheduler")) ==
        "coordinator listens at 10.0.0.4:9091, coordinator at 10.0.0.4:9091 (DMLC_ROLE=scheduler)");
  CHECK(described(dmlc("server")) == "server, coordinator at 10.0.0.4:9091 (DMLC_ROLE=server)");
  CHECK(described(dmlc("worker")) == "worker, coordinator at 10.0.0.4:9091 (DMLC_ROLE=worker)");
}

TEST_CASE("DMLC: DMLC_WORKER_ID and DMLC_SERVER_ID set the index") {
  CHECK(described(dmlc("worker", {{"DMLC_WORKER_ID", "2"}, {"DMLC_SERVER_ID", "7"}})) ==
        "worker 2, coordinator at 10.0.0.4:9091 (DMLC_ROLE=worker DMLC_WORKER_ID=2)");
  CHECK(described(dmlc("server", {{"DMLC_SERVER_ID", "0"}})) ==
        "server 0, coordinator at 10.0.0.4:9091 (DMLC_ROLE=server DMLC_SERVER_ID=0)");
}

TEST_CASE("DMLC: a missing or wrong variable is named") {
  CHECK(contains(refusal(dmlc("helper")), "DMLC_ROLE is `helper`: set it to scheduler, "));
  CHECK(contains(refusal({{"DMLC_ROLE", "worker"}}), "DMLC_PS_ROOT_URI is not set, but DMLC_ROLE"));
  CHECK(contains(refusal({{"DMLC_PS_ROOT_URI", "a"}}), "but DMLC_ROLE is not set"));
  CHECK(contains(refusal(dmlc("worker", {{"DMLC_PS_ROOT_PORT", "http"}})),
      "DMLC_PS_ROOT_URI and DMLC_PS_ROOT_PORT are `10.0.0.4` and `http`, which are not"));
  CHECK(contains(refusal(dmlc("worker", {{"DMLC_NUM_WORKER", "three"}})),
      "DMLC_NUM_WORKER is `three`, which is not a whole number"));
  CHECK(contains(refusal(dmlc("worker", {{"DMLC_WORKER_ID", "-1"}})), "DMLC_WORKER_ID is `-1`"));
  CHECK(contains(refusal(dmlc("worker"), {.servers = 2, .workers = 2}),
      "DMLC_NUM_SERVER and DMLC_NUM_WORKER: 1 server and 3 workers, but the file asks for 2 "
      "servers and 2 workers. Start every role with --set cluster.workers=3 --set "
      "cluster.servers=1"));
}

kj::String ofRank(kj::StringPtr rank, Job job = {}) {
  return described({{"OMPI_COMM_WORLD_RANK", rank}, {"OMPI_COMM_WORLD_SIZE", "5"},
                       {"OMPI_COMM_WORLD_LOCAL_SIZE", "5"}},
      job);
}

TEST_CASE("OpenMPI: rank 0 is the coordinator, followed by servers and then by workers") {
  CHECK(ofRank("0") ==
        "coordinator, meets in the folder, on one host (OMPI_COMM_WORLD_RANK: rank 0 of 5)");
  CHECK(ofRank("1") ==
        "server 0, meets in the folder, on one host (OMPI_COMM_WORLD_RANK: rank 1 of 5)");
  CHECK(ofRank("4") ==
        "worker 2, meets in the folder, on one host (OMPI_COMM_WORLD_RANK: rank 4 of 5)");
}

TEST_CASE("OpenMPI: if the coordinator runs elsewhere, the ranks are servers, then workers") {
  CHECK(ofRank("0", {.workers = 4, .isCoordinatorGiven = true}) ==
        "server 0, on one host (OMPI_COMM_WORLD_RANK: rank 0 of 5)");
  CHECK(ofRank("1", {.workers = 4, .isCoordinatorGiven = true}) ==
        "worker 0, on one host (OMPI_COMM_WORLD_RANK: rank 1 of 5)");
}

TEST_CASE("OpenMPI: one rank runs all servers of a process") {
  Job job{.servers = 4, .workers = 2, .serversPerProcess = 2};
  CHECK(contains(ofRank("2", job), "server 2, "));
  CHECK(contains(ofRank("3", job), "worker 0, "));
}

TEST_CASE("MPICH and Slurm: ranks have the same roles as with OpenMPI, by other variables") {
  CHECK(described({{"PMI_RANK", "1"}, {"PMI_SIZE", "5"}, {"MPI_LOCALNRANKS", "2"}}) ==
        "server 0, meets in the folder (PMI_RANK: rank 1 of 5)");
  CHECK(described({{"SLURM_PROCID", "2"}, {"SLURM_NTASKS", "5"}, {"SLURM_NNODES", "4"}}) ==
        "worker 0, meets in the folder (SLURM_PROCID: rank 2 of 5)");
  CHECK(contains(described({{"SLURM_PROCID", "2"}, {"SLURM_NTASKS", "5"}, {"SLURM_NNODES", "1"}}),
      "on one host"));
}

TEST_CASE("ranks: if their number is wrong, the message says how many to start") {
  CHECK(contains(refusal({{"PMI_RANK", "1"}, {"PMI_SIZE", "4"}}),
      "PMI_SIZE is 4, but the job has 5 processes: the coordinator, 1 of servers and 3 of workers. "
      "Start 5, or start every role with --set cluster.workers=2"));
  auto few = refusal({{"PMI_RANK", "1"}, {"PMI_SIZE", "2"}});
  CHECK(contains(few, "Start 5"));
  CHECK_FALSE(contains(few, "--set"));
  CHECK(contains(refusal({{"PMI_RANK", "x"}}), "PMI_RANK is `x`, which is not a whole number"));
  CHECK(contains(refusal({{"SLURM_PROCID", "1"}}), "SLURM_NTASKS is not set, but SLURM_PROCID is"));
}

TEST_CASE("findRole: variables of the user take precedence over those of a launcher") {
  kj::Vector<Setting> all;
  auto tf = tfConfig(CHIEF, "\"type\": \"chief\", \"index\": 0");
  CHECK(described(all) == "none");
  auto add = [&](std::initializer_list<Setting> more, kj::StringPtr from) {
    all.addAll(more);
    INFO(from);
    CHECK(contains(described(all), from));
  };
  add({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "5"}}, "(SLURM_PROCID");
  add({{"PMI_RANK", "0"}, {"PMI_SIZE", "5"}}, "(PMI_RANK");
  add({{"OMPI_COMM_WORLD_RANK", "0"}, {"OMPI_COMM_WORLD_SIZE", "5"}}, "(OMPI_COMM_WORLD_RANK");
  all.addAll(dmlc("worker"));
  add({}, "(DMLC_ROLE");
  add({{"TF_CONFIG", tf}}, "(TF_CONFIG");
  add({{"--ps_hosts", "a:1"}, {"--worker_hosts", "b:1,c:1,d:1"}, {"--job_name", "ps"},
          {"--task_index", "0"}},
      "(--job_name=ps");
}

TEST_CASE("--coordinator is refused if the environment has the coordinator's address") {
  CHECK(refusal(dmlc("worker"), {.isCoordinatorGiven = true}) ==
        "leave out --coordinator: the coordinator is at 10.0.0.4:9091 (DMLC_ROLE=worker)");
}

TEST_CASE("Kubernetes: an indexed Job gives the index of a server or worker") {
  ClusterConfig cluster{};
  cluster.serversPerProcess = 2;
  kj::Maybe<kj::StringPtr> value;
  RoleClues clues{[&](kj::StringPtr name) {
                    return name == "JOB_COMPLETION_INDEX" ? value : kj::Maybe<kj::StringPtr>();
                  },
      {}, cluster};
  CHECK(indexOfPod(Role::WORKER, clues) == nullptr);
  value = "3"_kj;
  CHECK(KJ_ASSERT_NONNULL(indexOfPod(Role::WORKER, clues)) == 3);
  CHECK(KJ_ASSERT_NONNULL(indexOfPod(Role::SERVER, clues)) == 6);
  value = "-1"_kj;
  auto e = kj::runCatchingExceptions([&]() { indexOfPod(Role::WORKER, clues); });
  CHECK(reasonOf(KJ_ASSERT_NONNULL(e)) ==
        "JOB_COMPLETION_INDEX is `-1`, which is not a whole number from 0");
}

}  // namespace
}  // namespace runner
