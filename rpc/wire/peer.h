// rpc/wire/peer.h: one end of a Cap'n Proto connection, with limits on the memory that the other
// end can make it use.
#pragma once

#include <capnp/capability.h>
#include <capnp/rpc-twoparty.h>
#include <kj/async-io.h>
#include <kj/time.h>

#include "rpc/placement.h"
#include "rpc/wire/wire.h"

namespace rpc {

// Limits on what one end accepts from the other. Beyond a limit it refuses a message, stops reading
// calls, or breaks a silent connection.
struct MessageLimits {
  // The largest payload of one message. A message of more than about twice that size is refused
  // before memory is allocated for it.
  uint64_t message_bytes = 1 << 20;
  // All unanswered calls of the other end together.
  uint64_t unanswered_bytes = 64 << 20;
  // How long the other end may be silent before the connection breaks: see breakOnSilence(). Null
  // keeps the system's time-outs.
  kj::Maybe<kj::Duration> silence = nullptr;
};

// Limits that suffice for the store's messages: a few slices per message (rpc/store/outbox.h), and
// one call in flight per slice.
MessageLimits limitsFor(const Placement& placement, kj::Maybe<kj::Duration> silence = nullptr);

// Whether `exception` was thrown by the other end of a connection, which was reached and refuses.
bool isOfOtherEnd(const kj::Exception& exception);

// One end of a connection. Unlike Cap'n Proto's TwoPartyClient it has limits, owns its stream, and
// serves either end.
//
// Dropping it closes the connection: calls in flight from this end fail with DISCONNECTED. Calls
// that the other end made run to their end, and their answers are dropped. Memory that messages
// refer to must outlive the peer.
//
// KJ sets TCP_NODELAY on every connection that it makes or accepts. A stream from elsewhere must
// already have it. A Unix socket carries up to DESCRIPTORS_MAX descriptors beside each message.
class Peer {
public:
  static constexpr uint DESCRIPTORS_MAX = 2;

  // The end that makes calls.
  Peer(kj::Own<kj::AsyncIoStream> stream, MessageLimits limits);
  // The end that serves `bootstrap`.
  Peer(
      kj::Own<kj::AsyncIoStream> stream, MessageLimits limits, capnp::Capability::Client bootstrap);
  KJ_DISALLOW_COPY(Peer);

  // The bootstrap capability of the other end.
  capnp::Capability::Client bootstrap();
  // Resolves when the other end has disconnected.
  kj::Promise<void> onDisconnect() { return network.onDisconnect(); }
  // See breakOnSilence() in rpc/wire/wire.h.
  void breakOnSilence(kj::Duration silence) { rpc::breakOnSilence(*stream, silence); }
  // The stream that sends this end's messages.
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

// Serves `bootstrap` over one connection. Resolves when the other end has disconnected. Dropping
// the promise closes the connection.
kj::Promise<void> serve(
    kj::Own<kj::AsyncIoStream> stream, MessageLimits limits, capnp::Capability::Client bootstrap);

}  // namespace rpc
