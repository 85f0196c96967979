#include "runner/logs/role_names.h"

namespace runner {

kj::StringPtr roleWord(Role role) {
  switch (role) {
    case Role::COORDINATOR:
      return "coordinator";
    case Role::SERVER:
      return "server";
    case Role::WORKER:
      return "worker";
  }
  KJ_UNREACHABLE;
}

kj::String roleName(Role role, uint index) {
  if (role == Role::COORDINATOR) return kj::str(roleWord(role));
  return kj::str(roleWord(role), " ", index);
}

kj::String onHost(kj::StringPtr name, kj::StringPtr host) {
  return host.size() == 0 ? kj::str(name) : kj::str(name, " on ", host);
}

kj::String processName(Role role, uint first, uint count) {
  if (count <= 1) return roleName(role, first);
  return kj::str("the process of ", roleWord(role), "s ", first, " to ", first + count - 1);
}

kj::String roleList(kj::ArrayPtr<const kj::String> names) {
  constexpr size_t NAMES_MAX = 5;
  if (names.size() <= NAMES_MAX) return kj::strArray(names, ", ");
  return kj::str(
      kj::strArray(names.slice(0, NAMES_MAX), ", "), ", … (", names.size(), " roles in all)");
}

kj::String inParentheses(kj::StringPtr text) {
  return text.size() == 0 ? kj::String() : kj::str(" (", text, ")");
}

}  // namespace runner
