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

kj::Array<RoleGroup> groupsOnHosts(const ClusterConfig& cluster) {
  auto groups = groupsHere(cluster);
  if (cluster.hosts.size() == 0) return groups;
  auto placed = cluster.roleHosts();
  auto hostOf = [&](const RoleGroup& group) {
    auto& first = group.roles[0];
    return first.role == Role::SERVER ? placed.servers[first.index] : placed.workers[first.index];
  };
  for (auto& group: groups) {
    auto host = cluster.hosts[hostOf(group)].toString();
    group.name = kj::str(group.name, " on ", host);
    for (auto& role: group.roles) role.host = kj::str(host);
  }
  std::stable_sort(groups.begin(), groups.end(),
      [&](const RoleGroup& a, const RoleGroup& b) { return hostOf(a) < hostOf(b); });
  return groups;
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
