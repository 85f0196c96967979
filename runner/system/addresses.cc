#include "runner/system/addresses.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <kj/debug.h>
#include <kj/io.h>
#include <kj/vector.h>
#include <net/if.h>
#include <netdb.h>
#include <unistd.h>

#include "configs/language/failure.h"

namespace runner {

namespace {

// Returns an address in the form that precedes a port.
kj::String beforePort(kj::StringPtr address) {
  return isIpv6(address) ? kj::str("[", address, "]") : kj::str(address);
}

// Returns an address in numbers, without brackets. Null if it is of neither IP version.
kj::Maybe<kj::String> inNumbers(const sockaddr* address) {
  char text[INET6_ADDRSTRLEN];
  const void* bytes = nullptr;
  if (address == nullptr) return nullptr;
  if (address->sa_family == AF_INET) {
    bytes = &reinterpret_cast<const sockaddr_in*>(address)->sin_addr;
  }
  if (address->sa_family == AF_INET6) {
    bytes = &reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr;
  }
  if (bytes == nullptr) return nullptr;
  KJ_ASSERT(::inet_ntop(address->sa_family, bytes, text, sizeof(text)) != nullptr);
  return kj::str(text);
}

// Returns the address from which this machine sends to `to`. Sends nothing. Null if no route leads
// there.
kj::Maybe<kj::String> sourceTowards(const addrinfo& to) {
  kj::AutoCloseFd fd(::socket(to.ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (fd == nullptr || ::connect(fd, to.ai_addr, to.ai_addrlen) != 0) return nullptr;
  sockaddr_storage own;
  socklen_t length = sizeof(own);
  KJ_SYSCALL(::getsockname(fd, reinterpret_cast<sockaddr*>(&own), &length));
  return inNumbers(reinterpret_cast<sockaddr*>(&own));
}

bool isLoopback(kj::StringPtr address) {
  return address.startsWith("127.") || address == "::1";
}

kj::StringPtr withoutBrackets(kj::StringPtr host, kj::String& owned) {
  if (!host.startsWith("[") || !host.endsWith("]")) return host;
  owned = kj::str(host.slice(1, host.size() - 1));
  return owned;
}

// Returns the addresses of a host in numbers, without brackets.
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
    KJ_IF_MAYBE(text, inNumbers(each->ai_addr)) {
      if (whyNotCallable(*text) == nullptr) all.add(kj::mv(*text));
    }
  }
  return all.releaseAsArray();
}

// An address of a network interface that is up, and that other machines may be able to call.
struct OwnAddress {
  kj::String interface;
  kj::String address;  // in numbers, without brackets
};

kj::Array<OwnAddress> ownAddresses() {
  ifaddrs* found = nullptr;
  KJ_SYSCALL(::getifaddrs(&found));
  KJ_DEFER(::freeifaddrs(found));
  kj::Vector<OwnAddress> all;
  for (auto each = found; each != nullptr; each = each->ifa_next) {
    if ((each->ifa_flags & IFF_UP) == 0) continue;
    KJ_IF_MAYBE(text, inNumbers(each->ifa_addr)) {
      bool isCallable = whyNotCallable(*text) == nullptr;
      if (isCallable) all.add(OwnAddress{kj::str(each->ifa_name), kj::mv(*text)});
    }
  }
  return all.releaseAsArray();
}

// Returns "lo 127.0.0.1, eth0 10.0.0.4".
kj::String inWords(kj::ArrayPtr<const OwnAddress> addresses) {
  auto words = KJ_MAP(own, addresses) {
    return kj::str(own.interface, " ", own.address);
  };
  return kj::strArray(words, ", ");
}

// Returns the addresses that other hosts can reach: the IPv4 ones, or the IPv6 ones if there are no
// IPv4 ones.
kj::Array<kj::StringPtr> reachable(kj::ArrayPtr<const kj::String> addresses) {
  kj::Vector<kj::StringPtr> ipv4, ipv6;
  for (auto& address: addresses) {
    if (isLoopback(address)) continue;
    (isIpv6(address) ? ipv6 : ipv4).add(address);
  }
  return ipv4.empty() ? ipv6.releaseAsArray() : ipv4.releaseAsArray();
}

}  // namespace

bool isIpv6(kj::StringPtr text) {
  in6_addr ignored;
  return ::inet_pton(AF_INET6, text.cStr(), &ignored) == 1;
}

kj::Maybe<kj::String> whyNotCallable(kj::StringPtr address) {
  in_addr ipv4;
  in6_addr ipv6;
  bool isIpv4 = ::inet_pton(AF_INET, address.cStr(), &ipv4) == 1;
  if (!isIpv4 && ::inet_pton(AF_INET6, address.cStr(), &ipv6) != 1) {
    return kj::str("`", address, "` is not an address in numbers, such as 10.0.0.4");
  }
  if (isIpv4 ? ipv4.s_addr == INADDR_ANY
             : IN6_IS_ADDR_UNSPECIFIED(&ipv6) || IN6_IS_ADDR_V4MAPPED(&ipv6)) {
    return kj::str("other hosts cannot connect to `", address, "`");
  }
  if (!isIpv4 && IN6_IS_ADDR_LINKLOCAL(&ipv6)) {
    return kj::str(
        "`", address, "` is a link-local address, which means another network on every host");
  }
  return nullptr;
}

kj::Maybe<kj::String> whyNoInterface(kj::StringPtr word) {
  in_addr ignored;
  if (isIpv6(word) || ::inet_pton(AF_INET, word.cStr(), &ignored) == 1) return whyNotCallable(word);
  bool isName = word.size() > 0 && word.size() < IFNAMSIZ;
  for (char c: word) isName = isName && c > ' ' && c <= '~' && c != '/';
  if (isName) return nullptr;
  return kj::str("`", word, "` is neither a network interface nor an address in numbers");
}

kj::Maybe<kj::String> whyNotOwn(kj::StringPtr address) {
  kj::String owned;
  auto bare = withoutBrackets(address, owned);
  if (isLoopback(bare)) return nullptr;
  auto all = ownAddresses();
  for (auto& own: all) {
    if (own.address == bare) return nullptr;
  }
  return kj::str("this machine does not have the address ", bare, ". It has: ", inWords(all));
}

kj::String addressOfInterface(kj::StringPtr word) {
  if (whyNotCallable(word) == nullptr) return beforePort(word);
  auto all = ownAddresses();
  kj::Maybe<kj::String> ipv6;
  for (auto& own: all) {
    if (word != own.interface) continue;
    if (!isIpv6(own.address)) return kj::mv(own.address);
    if (ipv6 == nullptr) ipv6 = beforePort(own.address);
  }
  KJ_IF_MAYBE(address, ipv6) return kj::mv(*address);
  configs::fail("cluster.interface: this machine has no interface `", word,
      "` with an address that other machines can connect to. It has: ", inWords(all));
}

kj::String ownAddressOf(kj::StringPtr host, bool isOneHost) {
  auto interfaces = KJ_MAP(own, ownAddresses()) {
    return kj::str(own.address);
  };
  return chooseAddress(host, isOneHost, addressesOf(host), interfaces);
}

kj::String chooseAddress(kj::StringPtr host, bool isOneHost,
    kj::ArrayPtr<const kj::String> resolved, kj::ArrayPtr<const kj::String> interfaces) {
  auto far = reachable(resolved);
  if (far.size() > 0) return beforePort(far[0]);
  if (resolved.size() == 0) {
    configs::fail("`", host, "` has no address that other machines can connect to");
  }
  kj::String owned;
  bool isMeant = host == "localhost" || isLoopback(withoutBrackets(host, owned));
  if (isOneHost || isMeant) {
    // The other end may prefer IPv4 when it resolves the name.
    for (auto& address: resolved) {
      if (!isIpv6(address)) return kj::str(address);
    }
    return beforePort(resolved[0]);
  }
  auto own = reachable(interfaces);
  if (own.size() == 1) return beforePort(own[0]);
  configs::fail("`", host, "` is ", resolved[0], " on this machine (/etc/hosts), which no other ",
      "host reaches, and ",
      own.size() == 0 ? kj::str("this machine has no other address")
                      : kj::str("this machine has several addresses: ", kj::strArray(own, ", "),
                            ". Choose one with cluster.interface, or --listen ADDRESS"));
}

kj::String addressTowards(kj::ArrayPtr<const kj::StringPtr> hosts) {
  constexpr kj::StringPtr WAY_OUT =
      ". Set cluster.interface to an address that all hosts can connect to"_kj;
  kj::Maybe<kj::String> found, why;
  kj::StringPtr foundFor;
  for (auto host: hosts) {
    addrinfo hints = {.ai_socktype = SOCK_DGRAM};
    addrinfo* first;
    int error = ::getaddrinfo(host.cStr(), "9", &hints, &first);
    if (error != 0) {
      if (why == nullptr) why = kj::str(host, ": ", ::gai_strerror(error));
      continue;
    }
    KJ_DEFER(::freeaddrinfo(first));
    KJ_IF_MAYBE(source, sourceTowards(*first)) {
      // Debian names a machine 127.0.1.1 in its own /etc/hosts.
      if (isLoopback(*source)) continue;
      if (found == nullptr) {
        found = kj::mv(*source);
        foundFor = host;
      } else if (KJ_ASSERT_NONNULL(found) != *source) {
        configs::fail("this machine reaches ", foundFor, " from ", KJ_ASSERT_NONNULL(found),
            ", but ", host, " from ", *source, WAY_OUT);
      }
    } else if (why == nullptr) {
      why = kj::str(host, ": no route to it");
    }
  }
  KJ_IF_MAYBE(address, found) return beforePort(*address);
  KJ_IF_MAYBE(reason, why) {
    configs::fail(
        "this machine does not know its address towards the hosts (", *reason, ")", WAY_OUT);
  }
  return kj::str("127.0.0.1");
}

}  // namespace runner
