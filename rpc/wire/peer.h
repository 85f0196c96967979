// rpc/wire/peer.h: one end of a Cap'n Proto connection, with limits on what the other may make it
// hold.
#pragma once

#include <capnp/capability.h>
#include <capnp/rpc-twoparty.h>
#include <kj/async-io.h>
#include <kj/time.h>

#include "rpc/placement.h"
#include "rpc/wire/wire.h"

namespace rpc {

// What an end takes from the other before it refuses (a message), stops reading (calls) or gives up
// (silence).
struct MessageLimits {
  // The largest payload of one message. Checked before memory is taken.
  uint64_t message_bytes = 1 << 20;
  // Calls of the other end that are not yet answered, together.
  uint64_t unanswered_bytes = 64 << 20;
  // How long the other end may be silent before the connection breaks: see breakOnSilence(). Null:
  // as the system has it.
  kj::Maybe<kj::Duration> silence = nullptr;
};

// Enough for the store's messages: some slices each (rpc/store/outbox.h), and one call in flight on
// each slice.
MessageLimits limitsFor(const Placement& placement, kj::Maybe<kj::Duration> silence = nullptr);

// One end of a connection: what capnp's TwoPartyClient is, but with limits, owning its stream, for
// both ends.
//
// Dropping it closes the connection: calls in flight from this end fail with DISCONNECTED. Calls
// that the other end made run on to their end; their answers are dropped. Memory that messages
// refer to must outlive it.
//
// KJ sets TCP_NODELAY on every connection that it makes or accepts; a stream from elsewhere must
// bring it. A Unix socket carries descriptors beside messages, at most DESCRIPTORS_MAX each.
class Peer {
public:
  static constexpr uint DESCRIPTORS_MAX = 2;

  // The end that asks.
  Peer(kj::Own<kj::AsyncIoStream> stream, MessageLimits limits);
  // The end that serves `bootstrap`.
  Peer(
      kj::Own<kj::AsyncIoStream> stream, MessageLimits limits, capnp::Capability::Client bootstrap);
  KJ_DISALLOW_COPY(Peer);

  // What the other end serves.
  capnp::Capability::Client bootstrap();
  // Resolves when the other end has gone.
  kj::Promise<void> onDisconnect() { return network.onDisconnect(); }
  // See breakOnSilence() in rpc/wire/wire.h.
  void breakOnSilence(kj::Duration silence) { rpc::breakOnSilence(*stream, silence); }
  // What this end's messages go through.
  Wire& wire() { return outgoing; }
  // Whether the other end is reached by a Unix socket.
  bool isLocal() const { return local != nullptr; }

private:
  kj::Own<kj::AsyncIoStream> stream;
  kj::Maybe<kj::AsyncCapabilityStream&> local;  // the same, if it is a Unix socket
  kj::Own<capnp::MessageStream> messages;
  Wire outgoing{*messages, stream->getFd()};
  capnp::TwoPartyVatNetwork network;
  capnp::RpcSystem<capnp::rpc::twoparty::VatId> system;
};

// Serves `bootstrap` over one connection. Resolves when the other end has gone; dropping the
// promise closes it.
kj::Promise<void> serve(
    kj::Own<kj::AsyncIoStream> stream, MessageLimits limits, capnp::Capability::Client bootstrap);

}  // namespace rpc
