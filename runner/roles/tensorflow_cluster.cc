#include "runner/roles/tensorflow_cluster.h"

#include <capnp/compat/json.h>
#include <capnp/message.h>
#include <kj/debug.h>

#include "configs/language/failure.h"
#include "runner/logs/role_names.h"
#include "runner/roles/role_addresses.h"
#include "runner/text/json.h"
#include "runner/text/numbers.h"

namespace runner {

namespace {

using Json = capnp::json::Value;

constexpr kj::StringPtr TF_CONFIG = "TF_CONFIG"_kj;
constexpr uint64_t INDEX_MAX = 1000000;

kj::Maybe<Json::Reader> fieldOf(Json::Reader object, kj::StringPtr name) {
  for (auto field: object.getObject()) {
    if (field.getName() == name && !field.getValue().isNull()) return field.getValue();
  }
  return nullptr;
}

// Returns the entries of `cluster.<name>`. Empty if there is no such list.
kj::Array<kj::String> entriesOf(Json::Reader cluster, kj::StringPtr name) {
  kj::Vector<kj::String> entries;
  KJ_IF_MAYBE(list, fieldOf(cluster, name)) {
    if (!list->isArray()) {
      configs::fail(
          TF_CONFIG, ": cluster.", name, " is not a list of HOST:PORT: write [\"node1:2222\"]");
    }
    for (auto entry: list->getArray()) {
      if (!entry.isString()) {
        configs::fail(TF_CONFIG, ": cluster.", name, " has an entry that is not a text: write ",
            "\"node1:2222\"");
      }
      entries.add(kj::str(entry.getString()));
    }
  }
  return entries.releaseAsArray();
}

kj::Maybe<kj::String> chiefOf(Json::Reader cluster) {
  kj::Maybe<kj::String> chief;
  for (auto name: {"chief"_kj, "master"_kj}) {
    for (auto& entry: entriesOf(cluster, name)) {
      if (chief != nullptr) {
        configs::fail(TF_CONFIG, ": cluster has more than one chief (an old name of chief is ",
            "master): leave one, and make the others workers");
      }
      chief = kj::mv(entry);
    }
  }
  return chief;
}

uint64_t indexOf(Json::Reader task) {
  KJ_IF_MAYBE(index, fieldOf(task, "index")) {
    if (index->isNumber() && index->getNumber() >= 0 && index->getNumber() <= INDEX_MAX &&
        index->getNumber() == uint64_t(index->getNumber())) {
      return index->getNumber();
    }
    if (index->isString()) {
      KJ_IF_MAYBE(n, parseWhole(index->getString())) return *n;
    }
    configs::fail(TF_CONFIG, ": task.index is not a whole number from 0");
  }
  configs::fail(TF_CONFIG, ": task.index is missing: write \"index\": 0 for the first of its type");
}

kj::Array<kj::String> splitList(kj::StringPtr text) {
  kj::Vector<kj::String> parts;
  auto add = [&](kj::ArrayPtr<const char> part) {
    while (part.size() > 0 && part.front() == ' ') part = part.slice(1, part.size());
    while (part.size() > 0 && part.back() == ' ') part = part.slice(0, part.size() - 1);
    if (part.size() > 0) parts.add(kj::str(part));
  };
  size_t begin = 0;
  for (size_t i = 0; i <= text.size(); i++) {
    if (i < text.size() && text[i] != ',') continue;
    add(text.slice(begin, i));
    begin = i + 1;
  }
  return parts.releaseAsArray();
}

}  // namespace

void requireCounts(
    kj::StringPtr source, uint64_t servers, uint64_t workers, const ClusterConfig& job) {
  if (servers == job.servers && workers == job.workers) return;
  // No number of servers in the file would help.
  if (servers == 0 && job.servers > 0) {
    configs::fail(source, ": there is no server, but the file asks for ", job.roles(),
        ". Add servers to ", source, ", or choose a kvstore.mode without servers");
  }
  if (servers > 0 && job.servers == 0) {
    configs::fail(source, ": ", counted(servers, "server"), ", but the kvstore.mode of the file ",
        "has none. Leave the servers out of ", source);
  }
  kj::Vector<kj::String> settings;
  if (workers != job.workers) settings.add(kj::str("--set cluster.workers=", workers));
  if (servers != job.servers) settings.add(kj::str("--set cluster.servers=", servers));
  ClusterConfig other{};
  other.servers = servers;
  other.workers = workers;
  configs::fail(source, ": ", other.roles(), ", but the file asks for ", job.roles(),
      ". Start every role with ", kj::strArray(settings, " "), ", or change ", source);
}

FoundRole TensorFlowCluster::roleOf(
    kj::StringPtr type, uint64_t index, kj::StringPtr place, const ClusterConfig& job) const {
  if (type == "evaluator") {
    configs::fail(source, ": this job needs no evaluator: its workers validate after every epoch, ",
        "and `runner table FOLDER` prints what they found. Start every task but this one");
  }
  bool hasChief = chief != nullptr;
  bool isChief = type == "chief" || type == "master";
  if (!isChief && type != "worker" && type != "ps") {
    configs::fail(source, ": there is no task type `", type, "` (chief, worker, ps)");
  }
  KJ_IF_MAYBE(c, chief) {
    if (parseHostAndPort(*c) == nullptr) {
      configs::fail(source, ": the chief is at `", *c, "`, which is not HOST:PORT");
    }
  }
  auto check = [&](kj::StringPtr name, kj::ArrayPtr<const kj::String> entries) {
    for (auto i: kj::indices(entries)) {
      if (parseHostAndPort(entries[i]) != nullptr) continue;
      configs::fail(
          source, ": ", name, " ", i, " is at `", entries[i], "`, which is not HOST:PORT");
    }
  };
  check("worker", workers);
  check("ps", servers);
  uint64_t count = isChief ? hasChief : type == "ps" ? servers.size() : workers.size();
  if (index >= count) {
    configs::fail(source, ": ", place, " is ", index, ", but the cluster has ",
        count == 0 ? kj::str("no ", type)
                   : kj::str(count, " of type ", type, ": write a number from 0 to ", count - 1));
  }
  if (!hasChief && workers.size() == 0) {
    configs::fail(source, ": the cluster has no worker: add one, or a chief");
  }
  requireCounts(source, servers.size(), workers.size() + hasChief, job);

  FoundRole found;
  KJ_IF_MAYBE(c, chief) {
    found.coordinator = kj::str(*c);
  } else {
    found.coordinator = kj::str(workers[0]);
  }
  auto hostOf = [](kj::StringPtr entry) {
    auto both = parseHostAndPort(entry);
    return kj::str(KJ_ASSERT_NONNULL(both).host);
  };
  auto first = hostOf(found.coordinator);
  found.isOneHost = true;
  for (auto& entry: workers) found.isOneHost &= hostOf(entry) == first;
  for (auto& entry: servers) found.isOneHost &= hostOf(entry) == first;
  found.role = type == "ps" ? Role::SERVER : Role::WORKER;
  found.index = uint(type == "worker" ? index + hasChief : index);
  found.carriesCoordinator = isChief || (type == "worker" && !hasChief && index == 0);
  found.listen = type == "ps"               ? kj::str(servers[index])
                 : found.carriesCoordinator ? kj::str(found.coordinator)
                                            : kj::str(workers[index]);
  found.from =
      isChief ? kj::str(source, ": chief") : kj::str(source, ": ", type, " ", index, " of ", count);
  return found;
}

FoundRole roleByTfConfig(kj::StringPtr text, const ClusterConfig& job) {
  capnp::MallocMessageBuilder message;
  auto config = message.initRoot<Json>();
  auto parse = [&]() {
    decodeJson(
        text, [&](kj::ArrayPtr<const char> json) { capnp::JsonCodec().decodeRaw(json, config); });
  };
  KJ_IF_MAYBE(e, kj::runCatchingExceptions(parse)) {
    // `expected <condition>; <what is wrong>.`
    auto why = e->getDescription();
    KJ_IF_MAYBE(semicolon, why.findLast(';')) why = why.slice(kj::min(*semicolon + 2, why.size()));
    configs::fail(TF_CONFIG, " is not JSON: ", why, why.endsWith(".") ? "" : ".",
        " Write {\"cluster\": {\"worker\": [\"node1:2222\"], …}, \"task\": {\"type\": "
        "\"worker\", ",
        "\"index\": 0}}");
  }
  auto sectionOf = [&](kj::StringPtr name) -> Json::Reader {
    if (config.isObject()) {
      KJ_IF_MAYBE(section, fieldOf(config, name)) {
        if (section->isObject()) return *section;
      }
    }
    configs::fail(TF_CONFIG, " has no object `", name, "`: add it, or unset ", TF_CONFIG,
        " and use `runner run` to train on one machine");
    KJ_UNREACHABLE;
  };
  auto cluster = sectionOf("cluster"), task = sectionOf("task");
  TensorFlowCluster described{
      TF_CONFIG, chiefOf(cluster), entriesOf(cluster, "worker"), entriesOf(cluster, "ps")};
  KJ_IF_MAYBE(type, fieldOf(task, "type")) {
    if (type->isString()) {
      // The evaluator is not in the cluster.
      auto index = type->getString() == "evaluator" ? 0 : indexOf(task);
      return described.roleOf(type->getString(), index, "task.index", job);
    }
  }
  configs::fail(TF_CONFIG, ": task.type is missing: write \"chief\", \"worker\" or \"ps\"");
}

FoundRole roleByFlags(const TaskFlags& flags, const ClusterConfig& job) {
  auto require = [](kj::StringPtr name, kj::StringPtr value) {
    if (value.size() == 0) {
      configs::fail(name, " is missing: --ps_hosts, --worker_hosts, --job_name and --task_index ",
          "belong together");
    }
  };
  require("--worker_hosts", flags.workerHosts);
  require("--job_name", flags.jobName);
  require("--task_index", flags.taskIndex);
  KJ_IF_MAYBE(index, parseWhole(flags.taskIndex)) {
    TensorFlowCluster described{"--ps_hosts and --worker_hosts", nullptr,
        splitList(flags.workerHosts), splitList(flags.psHosts)};
    auto found = described.roleOf(flags.jobName, *index, "--task_index", job);
    found.from = kj::str("--job_name=", flags.jobName, " --task_index=", *index);
    return found;
  }
  configs::fail("--task_index is `", flags.taskIndex, "`, which is not a whole number from 0");
}

}  // namespace runner
