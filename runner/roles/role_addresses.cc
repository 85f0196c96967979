#include "runner/roles/role_addresses.h"

#include "configs/language/failure.h"
#include "runner/system/addresses.h"

namespace runner {

kj::Maybe<HostAndPort> parseHostAndPort(kj::StringPtr text) {
  KJ_IF_MAYBE(colon, text.findLast(':')) {
    auto port = text.slice(*colon + 1);
    // An IPv6 address contains colons, so it is in brackets.
    bool hasHost = text.findFirst(':') == text.findLast(':')
                       ? *colon > 0
                       : text[0] == '[' && text[*colon - 1] == ']';
    if (!hasHost || port.findFirst('-') != nullptr) return nullptr;
    KJ_IF_MAYBE(parsed, rpc::parsePorts(port)) {
      return HostAndPort{kj::str(text.slice(0, *colon)), parsed->first};
    }
  }
  return nullptr;
}

ListenPlace parseListenPlace(kj::StringPtr text) {
  ListenPlace place;
  place.host = kj::str(text);
  KJ_IF_MAYBE(both, parseHostAndPort(text)) {
    place.host = kj::mv(both->host);
    place.ports = rpc::PortRange{both->port, both->port};
  }
  bool hasBrackets = place.host.startsWith("[") && place.host.endsWith("]");
  auto bare =
      hasBrackets ? kj::str(place.host.slice(1, place.host.size() - 1)) : kj::str(place.host);
  KJ_IF_MAYBE(why, whyNotCallable(bare)) {
    configs::fail("cannot listen at `", text, "`: ", *why,
        ". `ip address` shows the addresses of this machine");
  }
  if (isIpv6(bare)) place.host = kj::str("[", bare, "]");
  return place;
}

}  // namespace runner
