#include "rpc/wire/listener.h"

#include <arpa/inet.h>
#include <errno.h>
#include <kj/debug.h>
#include <kj/encoding.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>

#include "rpc/wire/opening.h"

namespace rpc {

namespace {

// With 128 random bits, no two sockets have the same name, on one machine or on several.
kj::String newLocalName() {
  kj::byte bytes[16];
  ssize_t n;
  KJ_SYSCALL(n = ::getrandom(bytes, sizeof(bytes), 0));
  KJ_ASSERT(n == sizeof(bytes));
  return kj::str("unix-abstract:runner-", kj::encodeHex(bytes));
}

kj::Promise<kj::Own<kj::ConnectionReceiver>> listenAt(kj::Network& network, kj::StringPtr name) {
  return network.parseAddress(name).then(
      [](kj::Own<kj::NetworkAddress> address) { return address->listen(); });
}

// An exception keeps only the text of an error number.
bool hasCause(const kj::Exception& exception, int error) {
  return strstr(exception.getDescription().cStr(), strerror(error)) != nullptr;
}

// Returns why listening on `host` and `ports` failed, and what to do.
kj::String whyNotListening(kj::StringPtr host, PortRange ports, const kj::Exception& e) {
  bool isOne = ports.first == ports.last;
  auto where =
      isOne ? kj::str(host, ":", ports.first) : kj::str(host, ":", ports.first, "-", ports.last);
  if (hasCause(e, EADDRINUSE)) {
    return kj::str("cannot listen on ", where, ": ", isOne ? "the port is" : "all these ports are",
        " in use. Choose other ports (cluster.port, or where this address was given), or stop the ",
        "program that uses ", isOne ? "it" : "them");
  }
  if (hasCause(e, EADDRNOTAVAIL)) {
    return kj::str("cannot listen on ", where, ": this machine does not have that address. ",
        "`ip address` shows those that it has");
  }
  return kj::str("cannot listen on ", where, ": ", e.getDescription());
}

// Tries `port` and those after it.
kj::Promise<kj::Own<kj::ConnectionReceiver>> listenOnOneOf(
    kj::Network& network, kj::String host, PortRange ports, uint port) {
  using Listening = kj::Promise<kj::Own<kj::ConnectionReceiver>>;
  auto listening = listenAt(network, kj::str(host, ":", port));
  return listening.catch_(
      [&network, host = kj::mv(host), ports, port](kj::Exception&& e) mutable -> Listening {
        if (hasCause(e, EADDRINUSE) && port < ports.last) {
          return listenOnOneOf(network, kj::mv(host), ports, port + 1);
        }
        return kj::Exception(
            kj::Exception::Type::FAILED, __FILE__, __LINE__, whyNotListening(host, ports, e));
      });
}

kj::Promise<kj::Own<kj::AsyncIoStream>> connectTo(kj::Network& network, kj::StringPtr name) {
  return network.parseAddress(name).then([](kj::Own<kj::NetworkAddress> address) {
    auto stream = address->connect();
    return stream.attach(kj::mv(address));
  });
}

kj::Promise<kj::Own<kj::AsyncIoStream>> connectAndOpen(
    kj::Network& network, kj::StringPtr address, const Identity& own, kj::StringPtr server) {
  return connectTo(network, address)
      .then([&own, name = kj::str(server)](kj::Own<kj::AsyncIoStream> stream) mutable {
        auto opened = openAsCaller(kj::mv(stream), own, name);
        return opened.attach(kj::mv(name));
      });
}

class Sockets final: public Listener {
public:
  const ServerAddress& address() const override { return where; }

  kj::Promise<void> serve(kj::Timer& timer, MessageLimits limits,
      capnp::Capability::Client bootstrap, const Identity& own,
      kj::Maybe<TellRefused&> tellRefused) override {
    auto serveOn = [&](kj::ConnectionReceiver& receiver) {
      return serveAll(timer, receiver, limits, bootstrap, own, {}, tellRefused);
    };
    auto serving = serveOn(*tcp);
    KJ_IF_MAYBE(receiver, local) serving = serving.exclusiveJoin(serveOn(**receiver));
    return kj::mv(serving);
  }

  ServerAddress where;
  kj::Own<kj::ConnectionReceiver> tcp;
  kj::Maybe<kj::Own<kj::ConnectionReceiver>> local;
};

}  // namespace

kj::Maybe<PortRange> parsePorts(kj::StringPtr text) {
  auto parse = [](kj::StringPtr digits) -> kj::Maybe<uint16_t> {
    for (char c: digits) {
      if (c < '0' || c > '9') return nullptr;
    }
    if (digits.size() == 0 || digits.size() > 5) return nullptr;
    auto port = digits.parseAs<uint>();
    if (port == 0 || port > uint16_t(kj::maxValue)) return nullptr;
    return uint16_t(port);
  };
  KJ_IF_MAYBE(hyphen, text.findFirst('-')) {
    KJ_IF_MAYBE(first, parse(kj::str(text.slice(0, *hyphen)))) {
      KJ_IF_MAYBE(last, parse(text.slice(*hyphen + 1))) {
        if (*first <= *last) return PortRange{*first, *last};
      }
    }
    return nullptr;
  }
  return parse(text).map([](uint16_t port) { return PortRange{port, port}; });
}

bool isLoopback(kj::StringPtr host) {
  return host.startsWith("127.") || host == "[::1]";
}

kj::String localHostOf(kj::AsyncIoStream& stream) {
  sockaddr_storage address = {};
  uint size = sizeof(address);
  stream.getsockname(reinterpret_cast<sockaddr*>(&address), &size);
  char text[INET6_ADDRSTRLEN];
  if (address.ss_family == AF_INET) {
    auto& ipv4 = reinterpret_cast<const sockaddr_in&>(address);
    ::inet_ntop(AF_INET, &ipv4.sin_addr, text, sizeof(text));
    return kj::str(text);
  }
  KJ_REQUIRE(address.ss_family == AF_INET6, "not a TCP connection");
  auto& ipv6 = reinterpret_cast<const sockaddr_in6&>(address);
  ::inet_ntop(AF_INET6, &ipv6.sin6_addr, text, sizeof(text));
  return kj::str("[", text, "]");
}

kj::Promise<kj::Own<Listener>> Listener::listen(
    kj::Network& network, const Transport& transport, kj::StringPtr host, PortRange ports) {
  auto sockets = kj::heap<Sockets>();
  auto& self = *sockets;
  auto done = listenOnOneOf(network, kj::str(host), ports, ports.first)
                  .then([&self, host = kj::str(host)](kj::Own<kj::ConnectionReceiver> tcp) {
                    self.where.tcp = kj::str(host, ":", tcp->getPort());
                    self.tcp = kj::mv(tcp);
                  });
  if (transport.hasLocal) {
    self.where.local = newLocalName();
    done =
        done.then([&self, &network]() { return listenAt(network, self.where.local); })
            .then([&self](kj::Own<kj::ConnectionReceiver> local) { self.local = kj::mv(local); });
  }
  return done.then(
      [sockets = kj::mv(sockets)]() mutable -> kj::Own<Listener> { return kj::mv(sockets); });
}

kj::Promise<kj::Own<kj::AsyncIoStream>> connect(kj::Network& network, const ServerAddress& address,
    const Transport& transport, const Identity& own, kj::StringPtr server) {
  if (!transport.hasLocal) return connectAndOpen(network, address.tcp, own, server);
  auto stream = connectAndOpen(network, address.local, own, server);
  return stream.catch_([&network, &transport, &own, tcp = kj::str(address.tcp),
                           server = kj::str(server)](
                           kj::Exception&& e) -> kj::Promise<kj::Own<kj::AsyncIoStream>> {
    // The server may be on another machine, or belong to another user of this one.
    if (!transport.isRequired) return connectAndOpen(network, tcp, own, server);
    return kj::Exception(e.getType(), kj::heapString(e.getFile()), e.getLine(),
        kj::str("cannot use its Unix socket: ", e.getDescription(), ". kvstore.transport = \"",
            transport.name, "\" needs all roles on one machine and of one user. Choose \"auto\" ",
            "or \"tcp\""));
  });
}

}  // namespace rpc
