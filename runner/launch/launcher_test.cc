#include "runner/launch/launcher.h"

#include <doctest/doctest.h>
#include <kj/debug.h>
#include <kj/vector.h>

#include "runner/system/reason.h"

namespace runner {
namespace {

struct HostAndSlots {
  kj::StringPtr name;
  kj::Maybe<uint> slots;
};

// A job with one server, whose workers have one GPU each.
ClusterConfig clusterOn(std::initializer_list<HostAndSlots> hosts, uint workers) {
  ClusterConfig cluster;
  cluster.servers = cluster.serversPerProcess = 1;
  cluster.workers = workers;
  cluster.devices = kj::arr(kj::str("cuda:0"));
  kj::Vector<Host> all;
  for (auto& each: hosts) {
    Host host;
    host.name = kj::str(each.name);
    host.slots = each.slots;
    all.add(kj::mv(host));
  }
  cluster.hosts = all.releaseAsArray();
  return cluster;
}

// Returns the groups that are left without the host `gone`, each worker with its device.
kj::String placed(const ClusterConfig& cluster, kj::StringPtr gone) {
  kj::Vector<kj::String> words;
  auto lost = kj::arr(kj::str(gone));
  for (auto& group: groupsOnHosts(cluster, lost)) {
    auto& role = group.roles[0];
    bool isWorker = role.role == Role::WORKER;
    words.add(isWorker
                  ? kj::str(group.name, ": ", cluster.devicesOf(role.index, role.workersBefore)[0])
                  : kj::str(group.name));
  }
  return kj::strArray(words, ", ");
}

TEST_CASE("groupsOnHosts: the workers of a lost host get free slots, and the GPUs of these") {
  // b has fewer groups than c, but no free slot.
  auto cluster = clusterOn({{"a", 2u}, {"b", 1u}, {"c", 3u}}, 4);
  CHECK(placed(cluster, "none") ==
        "server 0 on a, worker 0 on a: cuda:0, worker 3 on a: cuda:1, worker 1 on b: cuda:0, "
        "worker 2 on c: cuda:0");
  CHECK(placed(cluster, "a") ==
        "worker 1 on b: cuda:0, server 0 on b, worker 2 on c: cuda:0, worker 0 on c: cuda:1, "
        "worker 3 on c: cuda:2");
}

TEST_CASE("groupsOnHosts: workers that move to a host without slots use the GPUs of the file") {
  auto cluster = clusterOn({{"a", 2u}, {"b", nullptr}}, 4);
  CHECK(placed(cluster, "a") ==
        "worker 1 on b: cuda:0, worker 3 on b: cuda:0, server 0 on b, worker 0 on b: cuda:0, "
        "worker 2 on b: cuda:0");
}

TEST_CASE("groupsOnHosts: refuses to put more workers on a host than it has slots") {
  auto cluster = clusterOn({{"a", 1u}, {"b", 1u}, {"c", 1u}}, 3);
  auto refused = kj::runCatchingExceptions([&]() { placed(cluster, "c"); });
  CHECK(reasonOf(KJ_REQUIRE_NONNULL(refused)) ==
        "the hosts that are left have 2 slots, but there are 3 workers; repair a lost host, or "
        "raise slots=N in cluster.hosts");
}

}  // namespace
}  // namespace runner
