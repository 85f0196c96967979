// tests/simulation/virtual_network.h: TCP between the processes of a simulated job.
#pragma once

#include <kj/async-io.h>
#include <kj/function.h>
#include <kj/map.h>
#include <kj/vector.h>

#include "tests/simulation/dice.h"
#include "tests/simulation/virtual_clock.h"

namespace simulation {

class Connection;
class Receiver;
class VirtualNetwork;

// A process, as the network and the clock see it. Its timer stops while it is frozen.
class Endpoint final: private kj::Network, private kj::Timer {
public:
  // `network` must outlive it.
  explicit Endpoint(VirtualNetwork& network);
  ~Endpoint() noexcept(false);
  KJ_DISALLOW_COPY(Endpoint);

  kj::Network& sockets() { return *this; }
  kj::Timer& timer() { return *this; }

  // The process is killed: nothing that it still does has an effect. Data that it has sent before
  // arrive.
  void die();
  // Nothing happens in the process until `end`: SIGSTOP.
  void freezeUntil(kj::TimePoint end) { frozen = kj::max(frozen, end); }
  // Nothing that it sends, and nothing that is sent to it, arrives before `end`. With `other`, the
  // others still reach it.
  void cutUntil(kj::TimePoint end, kj::Maybe<Endpoint&> other = nullptr);

  bool isDead() const { return dead; }
  // Whether nobody can reach the process now.
  bool isAway() const;

private:
  friend class Connection;
  friend class Stream;
  friend class Receiver;
  friend class Address;

  kj::Promise<kj::Own<kj::NetworkAddress>> parseAddress(kj::StringPtr text, uint port) override;
  kj::Own<kj::NetworkAddress> getSockaddr(const void*, uint) override;
  kj::Own<kj::Network> restrictPeers(
      kj::ArrayPtr<const kj::StringPtr>, kj::ArrayPtr<const kj::StringPtr>) override;

  kj::TimePoint now() const override;
  kj::Promise<void> atTime(kj::TimePoint time) override;
  kj::Promise<void> afterDelay(kj::Duration delay) override { return atTime(now() + delay); }

  // Returns when something that is sent now to `other`, or comes from there, can travel.
  kj::TimePoint cutFrom(const Endpoint& other) const;

  VirtualNetwork& network;
  bool dead = false;
  kj::TimePoint frozen = kj::origin<kj::TimePoint>();
  kj::TimePoint cut = kj::origin<kj::TimePoint>();
  const Endpoint* cutOther = nullptr;  // the process that it is cut off from. Null: all
};

// All connections. Bytes arrive in order, each piece after a time that is drawn.
class VirtualNetwork {
public:
  // A piece takes up to `slowest`. Both arguments must outlive it.
  VirtualNetwork(VirtualClock& clock, Dice& dice, kj::Duration slowest)
      : clock(clock), dice(dice), slowest(slowest) {}
  KJ_DISALLOW_COPY(VirtualNetwork);

  // Called before a process sends something, with its number from 0. The process may die() then.
  kj::Function<void(uint64_t number, Endpoint& from)> onSend = [](uint64_t, Endpoint&) {};
  // Returns how often processes have sent something.
  uint64_t sends() const { return sent; }

  // Breaks one of the connections like a reset: data in flight are lost. Returns false if there is
  // none.
  bool breakOne();
  // How many connections there are.
  size_t size() const { return connections.size(); }

private:
  friend class Connection;
  friend class Endpoint;
  friend class Stream;
  friend class Receiver;
  friend class Address;

  // Ports are reused soon, so that a connection to a lost role may reach its successor.
  uint freePort() const;

  VirtualClock& clock;
  Dice& dice;
  const kj::Duration slowest;
  uint64_t sent = 0;
  kj::Vector<Connection*> connections;
  kj::HashMap<uint, Receiver*> receivers;  // by port
};

}  // namespace simulation
