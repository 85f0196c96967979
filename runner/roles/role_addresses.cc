#include "runner/roles/role_addresses.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <kj/debug.h>
#include <kj/vector.h>
#include <net/if.h>
#include <netdb.h>

#include "configs/language/failure.h"
#include "runner/system/addresses.h"

namespace runner {

namespace {

// Returns the address in numbers, IPv6 in brackets. Null if it is neither, or only means another
// host on each host (link-local).
kj::Maybe<kj::String> textOf(const sockaddr* address) {
  char text[INET6_ADDRSTRLEN];
  if (address == nullptr) return nullptr;
  if (address->sa_family == AF_INET) {
    auto& ipv4 = *reinterpret_cast<const sockaddr_in*>(address);
    return kj::heapString(::inet_ntop(AF_INET, &ipv4.sin_addr, text, sizeof(text)));
  }
  if (address->sa_family != AF_INET6) return nullptr;
  auto& ipv6 = *reinterpret_cast<const sockaddr_in6*>(address);
  if (IN6_IS_ADDR_LINKLOCAL(&ipv6.sin6_addr)) return nullptr;
  return kj::str("[", ::inet_ntop(AF_INET6, &ipv6.sin6_addr, text, sizeof(text)), "]");
}

kj::StringPtr withoutBrackets(kj::StringPtr host, kj::String& owned) {
  if (!host.startsWith("[") || !host.endsWith("]")) return host;
  owned = kj::str(host.slice(1, host.size() - 1));
  return owned;
}

kj::Array<kj::String> addressesOf(kj::StringPtr host) {
  kj::String owned;
  addrinfo hints = {}, *found = nullptr;
  hints.ai_socktype = SOCK_STREAM;
  int error = ::getaddrinfo(withoutBrackets(host, owned).cStr(), nullptr, &hints, &found);
  if (error != 0) {
    configs::fail("this machine does not know the host `", host, "`: ", ::gai_strerror(error));
  }
  KJ_DEFER(::freeaddrinfo(found));
  kj::Vector<kj::String> all;
  for (auto each = found; each != nullptr; each = each->ai_next) {
    KJ_IF_MAYBE(text, textOf(each->ai_addr)) all.add(kj::mv(*text));
  }
  return all.releaseAsArray();
}

kj::Array<kj::String> interfaceAddresses() {
  ifaddrs* found = nullptr;
  KJ_SYSCALL(::getifaddrs(&found));
  KJ_DEFER(::freeifaddrs(found));
  kj::Vector<kj::String> all;
  for (auto each = found; each != nullptr; each = each->ifa_next) {
    if ((each->ifa_flags & IFF_UP) == 0) continue;
    KJ_IF_MAYBE(text, textOf(each->ifa_addr)) all.add(kj::mv(*text));
  }
  return all.releaseAsArray();
}

// Returns those that other hosts reach: the IPv4 ones, or the IPv6 ones if there is no IPv4 one.
kj::Array<kj::StringPtr> reachable(kj::ArrayPtr<const kj::String> addresses) {
  kj::Vector<kj::StringPtr> ipv4, ipv6;
  for (auto& address: addresses) {
    if (rpc::isLoopback(address)) continue;
    (address.startsWith("[") ? ipv6 : ipv4).add(address);
  }
  return ipv4.empty() ? ipv6.releaseAsArray() : ipv4.releaseAsArray();
}

}  // namespace

kj::Maybe<HostAndPort> parseHostAndPort(kj::StringPtr text) {
  KJ_IF_MAYBE(colon, text.findLast(':')) {
    auto port = text.slice(*colon + 1);
    // An IPv6 address has colons of its own, so it stands in brackets.
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
  kj::String owned;
  auto bare = withoutBrackets(place.host, owned);
  KJ_IF_MAYBE(why, whyNotCallable(bare)) {
    configs::fail("cannot listen at `", text, "`: ", *why,
        ". `ip address` shows the addresses of this machine");
  }
  if (isIpv6(bare)) place.host = kj::str("[", bare, "]");
  return place;
}

kj::String ownAddressOf(kj::StringPtr host, bool isOneHost) {
  return chooseAddress(host, isOneHost, addressesOf(host), interfaceAddresses());
}

kj::String chooseAddress(kj::StringPtr host, bool isOneHost,
    kj::ArrayPtr<const kj::String> resolved, kj::ArrayPtr<const kj::String> interfaces) {
  auto far = reachable(resolved);
  if (far.size() > 0) return kj::str(far[0]);
  KJ_REQUIRE(resolved.size() > 0, "a host without an address", host);
  bool isMeant = host == "localhost" || rpc::isLoopback(host);
  if (isOneHost || isMeant) {
    // Whoever resolves the name may prefer IPv4.
    for (auto& address: resolved) {
      if (!address.startsWith("[")) return kj::str(address);
    }
    return kj::str(resolved[0]);
  }
  auto own = reachable(interfaces);
  if (own.size() == 1) return kj::str(own[0]);
  configs::fail("`", host, "` is ", resolved[0], " on this machine (/etc/hosts), which no other ",
      "host reaches, and ",
      own.size() == 0 ? kj::str("this machine has no other address")
                      : kj::str("this machine has several addresses: ", kj::strArray(own, ", "),
                            ". Choose one with cluster.interface, or --listen ADDRESS"));
}

}  // namespace runner
