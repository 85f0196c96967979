#include "runner/launch/launcher.h"

#include <kj/vector.h>

#include <algorithm>

#include "runner/logs/role_names.h"
#include "runner/system/addresses.h"

namespace runner {

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
  for (auto& group: moved) {
    auto fewest = std::min_element(there.begin(), there.end(),
        [&](size_t a, size_t b) { return onHost[a].size() < onHost[b].size(); });
    KJ_REQUIRE(fewest != there.end(), "all hosts are gone");
    onHost[*fewest].add(kj::mv(group));
  }
  kj::Vector<RoleGroup> all;
  for (auto host: there) {
    auto name = cluster.hosts[host].toString();
    for (auto& group: onHost[host]) {
      group.name = kj::str(group.name, " on ", name);
      for (auto& role: group.roles) role.host = kj::str(name);
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
