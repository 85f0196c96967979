#include "runner/launch/launcher.h"

#include <kj/vector.h>

#include "runner/logs/role_names.h"

namespace runner {

kj::String PlacedRole::name() const {
  return onHost(roleName(role, index), host);
}

RoleOptions LaunchedRun::optionsOf(Role role, uint index, kj::StringPtr coordinator) const {
  return {role, index, kj::str(coordinator), {kj::str(folder.path)}, trace, true, secret};
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

}  // namespace runner
