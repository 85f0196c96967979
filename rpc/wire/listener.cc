#include "rpc/wire/listener.h"

#include <kj/debug.h>
#include <kj/encoding.h>
#include <sys/random.h>

#include "rpc/wire/acceptor.h"

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

kj::Promise<kj::Own<kj::AsyncIoStream>> connectTo(kj::Network& network, kj::StringPtr name) {
  return network.parseAddress(name).then([](kj::Own<kj::NetworkAddress> address) {
    auto stream = address->connect();
    return stream.attach(kj::mv(address));
  });
}

class Sockets final: public Listener {
public:
  const ServerAddress& address() const override { return where; }

  kj::Promise<void> serve(kj::Timer& timer, MessageLimits limits,
      capnp::Capability::Client bootstrap, const Identity& own) override {
    auto serving = serveAll(timer, *tcp, limits, bootstrap, own);
    KJ_IF_MAYBE(receiver, local) {
      serving = serving.exclusiveJoin(serveAll(timer, **receiver, limits, kj::mv(bootstrap), own));
    }
    return kj::mv(serving);
  }

  ServerAddress where;
  kj::Own<kj::ConnectionReceiver> tcp;
  kj::Maybe<kj::Own<kj::ConnectionReceiver>> local;
};

}  // namespace

kj::Promise<kj::Own<Listener>> Listener::listen(kj::Network& network, const Transport& transport) {
  auto sockets = kj::heap<Sockets>();
  auto& self = *sockets;
  auto done = listenAt(network, "127.0.0.1:0").then([&self](kj::Own<kj::ConnectionReceiver> tcp) {
    self.where.tcp = kj::str("127.0.0.1:", tcp->getPort());
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
  auto stream = connectTo(network, transport.hasLocal ? address.local : address.tcp);
  if (transport.hasLocal) {
    stream = stream.catch_([&network, &transport, tcp = kj::str(address.tcp)](
                               kj::Exception&& e) -> kj::Promise<kj::Own<kj::AsyncIoStream>> {
      if (!transport.isRequired) return connectTo(network, tcp);
      return kj::Exception(e.getType(), kj::heapString(e.getFile()), e.getLine(),
          kj::str("cannot reach its Unix socket: ", e.getDescription(), ". kvstore.transport = \"",
              transport.name, "\" needs all roles on one machine. Choose \"auto\" or \"tcp\""));
    });
  }
  return stream.then([&own, name = kj::str(server)](kj::Own<kj::AsyncIoStream> stream) mutable {
    auto proof = proveAsCaller(*stream, own, name);
    return proof.then([stream = kj::mv(stream)]() mutable { return kj::mv(stream); })
        .attach(kj::mv(name));
  });
}

}  // namespace rpc
