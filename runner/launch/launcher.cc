#include "runner/launch/launcher.h"

#include <kj/vector.h>

#include <algorithm>

#include "configs/language/failure.h"
#include "runner/logs/role_names.h"
#include "runner/system/addresses.h"
#include "runner/text/numbers.h"

namespace runner {

namespace {

bool isOfWorker(const RoleGroup& group) {
  return group.roles[0].role == Role::WORKER;
}

// Whether `host`, on which `groups` run, has no slot for another worker.
bool isFull(const Host& host, kj::ArrayPtr<const RoleGroup> groups) {
  KJ_IF_MAYBE(slots, host.slots) {
    return std::count_if(groups.begin(), groups.end(), isOfWorker) >= *slots;
  }
  return false;
}

}  // namespace

kj::String PlacedRole::name() const {
  return onHost(roleName(role, index), host);
}

kj::String saidBy(kj::StringPtr name, kj::StringPtr text) {
  return text.startsWith(name) ? kj::str(text) : kj::str(name, ": ", text);
}

RoleOptions LaunchedRun::optionsOf(Role role, uint index, kj::StringPtr coordinator) const {
  RoleOptions own{
      role, index, kj::str(coordinator), {kj::str(folder.path)}, options.trace, true, secret};
  own.resumes = options.resumes && role == Role::COORDINATOR;
  own.membershipOf = kj::str(options.membershipOf);
  return own;
}

kj::Array<RoleGroup> groupsHere(const ClusterConfig& cluster) {
  kj::Vector<RoleGroup> groups;
  auto add = [&](Role role, uint first, uint count) {
    auto roles = kj::heapArrayBuilder<PlacedRole>(count);
    for (uint i = 0; i < count; i++) roles.add(PlacedRole{role, first + i});
    groups.add(RoleGroup{processName(role, first, count), roles.finish()});
  };
  for (uint i = 0; i < cluster.servers; i += cluster.serversPerProcess) {
    add(Role::SERVER, i, cluster.serversOfProcess(i));
  }
  for (uint i = 0; i < cluster.workers; i++) add(Role::WORKER, i, 1);
  return groups.releaseAsArray();
}

kj::Array<RoleGroup> groupsOnHosts(
    const ClusterConfig& cluster, kj::ArrayPtr<const kj::String> gone) {
  auto groups = groupsHere(cluster);
  if (cluster.hosts.size() == 0) return groups;
  auto placed = cluster.roleHosts();
  // By the index of the host.
  auto onHost = kj::heapArray<kj::Vector<RoleGroup>>(cluster.hosts.size());
  for (auto& group: groups) {
    auto& first = group.roles[0];
    auto& hosts = first.role == Role::SERVER ? placed.servers : placed.workers;
    onHost[hosts[first.index]].add(kj::mv(group));
  }
  kj::Vector<RoleGroup> moved;
  kj::Vector<size_t> there;  // the hosts that are not lost
  for (auto host: kj::indices(onHost)) {
    auto name = cluster.hosts[host].toString();
    bool isGone = std::find(gone.begin(), gone.end(), name) != gone.end();
    if (!isGone) {
      there.add(host);
      continue;
    }
    for (auto& group: onHost[host]) moved.add(kj::mv(group));
  }
  KJ_REQUIRE(there.size() > 0, "all hosts are gone");
  for (auto& group: moved) {
    kj::Vector<size_t> free;
    for (auto host: there) {
      if (!isOfWorker(group) || !isFull(cluster.hosts[host], onHost[host])) free.add(host);
    }
    auto fewest = std::min_element(free.begin(), free.end(),
        [&](size_t a, size_t b) { return onHost[a].size() < onHost[b].size(); });
    if (fewest == free.end()) {
      uint64_t slots = 0;
      for (auto host: there) slots += KJ_ASSERT_NONNULL(cluster.hosts[host].slots);
      configs::fail("the hosts that are left have ", counted(slots, "slot"), ", but there are ",
          counted(cluster.workers, "worker"),
          "; repair a lost host, or raise slots=N in cluster.hosts");
    }
    onHost[*fewest].add(kj::mv(group));
  }
  kj::Vector<RoleGroup> all;
  for (auto host: there) {
    auto name = cluster.hosts[host].toString();
    bool hasOwnGpus = cluster.hosts[host].slots != nullptr;
    uint workers = 0;
    for (auto& group: onHost[host]) {
      group.name = kj::str(group.name, " on ", name);
      for (auto& role: group.roles) role.host = kj::str(name);
      if (hasOwnGpus && isOfWorker(group)) group.roles[0].workersBefore = workers++;
      all.add(kj::mv(group));
    }
  }
  return all.releaseAsArray();
}

ListenPlace listenPlaceFor(const ClusterConfig& cluster) {
  ListenPlace place;
  KJ_IF_MAYBE(word, cluster.interface) {
    place.host = addressOfInterface(*word);
  } else if (cluster.hosts.size() > 0) {
    auto names = KJ_MAP(host, cluster.hosts)->kj::StringPtr {
      return host.name;
    };
    place.host = addressTowards(names);
  }
  return place;
}

}  // namespace runner
