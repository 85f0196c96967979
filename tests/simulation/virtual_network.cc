#include "tests/simulation/virtual_network.h"

#include <arpa/inet.h>
#include <errno.h>
#include <kj/debug.h>
#include <kj/refcount.h>
#include <netinet/in.h>
#include <string.h>

#include <algorithm>
#include <deque>

namespace simulation {

namespace {

constexpr kj::StringPtr HOST = "127.0.0.1:"_kj;

kj::Exception disconnected(const char* what, int error) {
  return kj::Exception(
      kj::Exception::Type::DISCONNECTED, __FILE__, __LINE__, kj::str(what, ": ", strerror(error)));
}

// The data in one direction.
struct Direction {
  struct Piece {
    kj::TimePoint due;
    kj::Array<kj::byte> bytes;
    size_t taken = 0;
  };
  explicit Direction(Endpoint& from, Endpoint& to): from(from), to(to) {}

  // Nothing follows. The end arrives after all that was sent.
  void end(kj::TimePoint arrives) {
    if (!ended) last = kj::max(last, arrives);
    ended = true;
    change();
  }
  // Wakes a reader that waits.
  void change() {
    KJ_IF_MAYBE(fulfiller, waiting) (*fulfiller)->fulfill();
    waiting = nullptr;
  }

  Endpoint& from;
  Endpoint& to;
  std::deque<Piece> pieces;
  kj::TimePoint last = kj::origin<kj::TimePoint>();  // when the last piece arrives
  bool ended = false;                                // nothing follows the pieces
  bool readerGone = false;                           // nobody reads them
  bool broken = false;
  kj::Maybe<kj::Own<kj::PromiseFulfiller<void>>> waiting;
};

}  // namespace

class Connection final: public kj::Refcounted {
public:
  Connection(VirtualNetwork& network, Endpoint& caller, Endpoint& listener)
      : network(network), there(caller, listener), back(listener, caller) {
    network.connections.add(this);
  }
  ~Connection() noexcept(false) {
    kj::Vector<Connection*> others;
    for (auto other: network.connections) {
      if (other != this) others.add(other);
    }
    network.connections = kj::mv(others);
  }

  void breakNow() {
    for (auto direction: {&there, &back}) {
      direction->broken = true;
      direction->pieces.clear();
      direction->change();
    }
  }
  bool hasBroken() const { return there.broken; }
  void lose(Endpoint& dead) {
    auto& out = &there.from == &dead ? there : back;
    auto& in = &there.from == &dead ? back : there;
    in.readerGone = true;
    out.end(arrival(out));
  }
  // Returns when something arrives that is sent now. The system signals the end of a process even
  // if the process was frozen.
  kj::TimePoint arrival(const Direction& direction) {
    auto sent = kj::max(network.clock.now(), direction.from.cutFrom(direction.to));
    return sent + network.dice.time(network.slowest);
  }
  bool has(Endpoint& end) const { return &there.from == &end || &back.from == &end; }

  VirtualNetwork& network;
  Direction there, back;
};

class Stream final: public kj::AsyncIoStream {
public:
  Stream(kj::Own<Connection> connection, bool isCaller)
      : connection(kj::mv(connection)),
        out(isCaller ? this->connection->there : this->connection->back),
        in(isCaller ? this->connection->back : this->connection->there),
        network(this->connection->network) {}
  ~Stream() noexcept(false) {
    if (in.to.dead) return;
    in.readerGone = true;
    out.end(connection->arrival(out));
  }

  kj::Promise<size_t> tryRead(void* buffer, size_t least, size_t most) override {
    return readMore(static_cast<kj::byte*>(buffer), least, most, 0);
  }

  kj::Promise<void> write(const void* buffer, size_t size) override {
    auto bytes = kj::arrayPtr(static_cast<const kj::byte*>(buffer), size);
    return write(kj::arrayPtr(&bytes, 1));
  }
  kj::Promise<void> write(kj::ArrayPtr<const kj::ArrayPtr<const kj::byte>> pieces) override {
    if (out.from.dead) return kj::NEVER_DONE;
    network.onSend(network.sent++, out.from);
    if (out.from.dead) return kj::NEVER_DONE;
    if (out.broken) return disconnected("write", ECONNRESET);
    if (out.readerGone || out.ended) return disconnected("write", EPIPE);
    kj::Vector<kj::byte> bytes;
    for (auto& piece: pieces) bytes.addAll(piece);
    auto arrives = kj::max(connection->arrival(out), out.from.frozen);
    out.last = kj::max(out.last, arrives);
    out.pieces.push_back({out.last, bytes.releaseAsArray()});
    out.change();
    return kj::READY_NOW;
  }

  kj::Promise<void> whenWriteDisconnected() override { return kj::NEVER_DONE; }
  void shutdownWrite() override { out.end(connection->arrival(out)); }
  void getsockname(sockaddr* address, uint* length) override { tellAddress(address, length); }
  void getpeername(sockaddr* address, uint* length) override { tellAddress(address, length); }

private:
  kj::Promise<size_t> readMore(kj::byte* buffer, size_t least, size_t most, size_t got) {
    if (in.broken) return disconnected("read", ECONNRESET);
    auto now = network.clock.now();
    bool isAwake = in.to.frozen <= now;
    while (isAwake && got < most && !in.pieces.empty() && in.pieces.front().due <= now) {
      auto& piece = in.pieces.front();
      auto count = kj::min(most - got, piece.bytes.size() - piece.taken);
      memcpy(buffer + got, piece.bytes.begin() + piece.taken, count);
      got += count;
      piece.taken += count;
      if (piece.taken == piece.bytes.size()) in.pieces.pop_front();
    }
    bool isOver = isAwake && in.pieces.empty() && in.ended && in.last <= now;
    if (got >= least || isOver) return got;
    auto paf = kj::newPromiseAndFulfiller<void>();
    in.waiting = kj::mv(paf.fulfiller);
    auto changed = kj::mv(paf.promise);
    kj::Maybe<kj::TimePoint> due;
    if (!in.pieces.empty()) {
      due = in.pieces.front().due;
    } else if (in.ended) {
      due = in.last;
    }
    KJ_IF_MAYBE(moment, due) {
      auto arrives = kj::max(*moment, in.to.frozen);
      changed = changed.exclusiveJoin(network.clock.timer().atTime(arrives));
    }
    return changed.then(
        [this, buffer, least, most, got]() { return readMore(buffer, least, most, got); });
  }

  static void tellAddress(sockaddr* address, uint* length) {
    sockaddr_in told = {};
    told.sin_family = AF_INET;
    told.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    memcpy(address, &told, kj::min(size_t(*length), sizeof(told)));
    *length = sizeof(told);
  }

  kj::Own<Connection> connection;
  Direction& out;
  Direction& in;
  VirtualNetwork& network;
};

class Receiver final: public kj::ConnectionReceiver {
public:
  Receiver(Endpoint& own, uint port): own(own), port(port) {
    own.network.receivers.insert(port, this);
  }
  ~Receiver() noexcept(false) { own.network.receivers.erase(port); }

  void come(kj::Own<kj::AsyncIoStream> stream) {
    arrived.push_back(kj::mv(stream));
    KJ_IF_MAYBE(fulfiller, waiting) (*fulfiller)->fulfill();
    waiting = nullptr;
  }

  kj::Promise<kj::Own<kj::AsyncIoStream>> accept() override {
    if (!arrived.empty()) {
      auto stream = kj::mv(arrived.front());
      arrived.pop_front();
      return kj::Promise<kj::Own<kj::AsyncIoStream>>(kj::mv(stream));
    }
    auto paf = kj::newPromiseAndFulfiller<void>();
    waiting = kj::mv(paf.fulfiller);
    return paf.promise.then([this]() { return accept(); });
  }
  uint getPort() override { return port; }

  Endpoint& own;

private:
  const uint port;
  std::deque<kj::Own<kj::AsyncIoStream>> arrived;
  kj::Maybe<kj::Own<kj::PromiseFulfiller<void>>> waiting;
};

class Address final: public kj::NetworkAddress {
public:
  Address(Endpoint& own, uint port): own(own), port(port) {}

  kj::Promise<kj::Own<kj::AsyncIoStream>> connect() override {
    auto& network = own.network;
    auto begin = network.clock.now();
    KJ_IF_MAYBE(receiver, network.receivers.find(port)) {
      begin = kj::max(begin, own.cutFrom((*receiver)->own));
    }
    auto arrives = begin + network.dice.time(network.slowest);
    return own.timer().atTime(arrives).then([this, &network]() {
      KJ_IF_MAYBE(receiver, network.receivers.find(port)) {
        auto& other = (*receiver)->own;
        if (!other.dead) {
          auto connection = kj::refcounted<Connection>(network, own, other);
          (*receiver)->come(kj::heap<Stream>(kj::addRef(*connection), false));
          kj::Own<kj::AsyncIoStream> stream = kj::heap<Stream>(kj::mv(connection), true);
          return stream;
        }
      }
      kj::throwFatalException(disconnected("connect()", ECONNREFUSED));
    });
  }
  kj::Own<kj::ConnectionReceiver> listen() override {
    return kj::heap<Receiver>(own, port == 0 ? own.network.freePort() : port);
  }
  kj::Own<kj::NetworkAddress> clone() override { return kj::heap<Address>(own, port); }
  kj::String toString() override { return kj::str(HOST, port); }

private:
  Endpoint& own;
  const uint port;
};

Endpoint::Endpoint(VirtualNetwork& network): network(network) {}
Endpoint::~Endpoint() noexcept(false) = default;

void Endpoint::cutUntil(kj::TimePoint end, kj::Maybe<Endpoint&> other) {
  cut = kj::max(cut, end);
  KJ_IF_MAYBE(only, other) {
    cutOther = only;
  } else {
    cutOther = nullptr;
  }
}

kj::TimePoint Endpoint::cutFrom(const Endpoint& other) const {
  auto until = kj::origin<kj::TimePoint>();
  if (cutOther == nullptr || cutOther == &other) until = kj::max(until, cut);
  if (other.cutOther == nullptr || other.cutOther == this) until = kj::max(until, other.cut);
  return until;
}

bool Endpoint::isAway() const {
  return kj::max(frozen, cut) > now();
}

void Endpoint::die() {
  dead = true;
  for (auto connection: network.connections) {
    if (connection->has(*this)) connection->lose(*this);
  }
}

kj::Promise<kj::Own<kj::NetworkAddress>> Endpoint::parseAddress(kj::StringPtr text, uint) {
  KJ_REQUIRE(text.startsWith(HOST), "no such host in the simulation", text);
  auto port = text.slice(HOST.size()).parseAs<uint>();
  kj::Own<kj::NetworkAddress> address = kj::heap<Address>(*this, port);
  return kj::mv(address);
}

kj::Own<kj::NetworkAddress> Endpoint::getSockaddr(const void*, uint) {
  KJ_UNIMPLEMENTED("the simulation has no such addresses");
}

kj::Own<kj::Network> Endpoint::restrictPeers(
    kj::ArrayPtr<const kj::StringPtr>, kj::ArrayPtr<const kj::StringPtr>) {
  KJ_UNIMPLEMENTED("the simulation does not restrict peers");
}

kj::TimePoint Endpoint::now() const {
  return network.clock.now();
}

kj::Promise<void> Endpoint::atTime(kj::TimePoint time) {
  return network.clock.timer().atTime(kj::max(time, frozen)).then([this]() -> kj::Promise<void> {
    if (frozen <= now()) return kj::READY_NOW;
    return atTime(frozen);
  });
}

uint VirtualNetwork::freePort() const {
  uint port = 5000;
  while (receivers.find(port) != nullptr) port++;
  return port;
}

bool VirtualNetwork::breakOne() {
  kj::Vector<Connection*> whole;
  for (auto connection: connections) {
    if (!connection->hasBroken()) whole.add(connection);
  }
  if (whole.empty()) return false;
  whole[dice.below(whole.size())]->breakNow();
  return true;
}

}  // namespace simulation
