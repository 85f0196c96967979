#include "rpc/wire/peer.h"

#include <kj/debug.h>

#include "rpc/wire/payload.h"

namespace rpc {

namespace {

using capnp::rpc::twoparty::Side;
using capnp::rpc::twoparty::VatId;

// Room for the rest of a message: the call itself, its list of slices (at most about 40 bytes per
// slice), names, and texts of exceptions with their context.
constexpr uint64_t ENVELOPE_BYTES = 64 << 10;

capnp::ReaderOptions readerOptions(MessageLimits limits) {
  capnp::ReaderOptions options;
  // Cap'n Proto counts a payload again at each access. Twice the size allows two accesses.
  options.traversalLimitInWords = (2 * limits.message_bytes + ENVELOPE_BYTES) / sizeof(capnp::word);
  return options;
}

// Returns the stream if it can carry descriptors. (KJ's class claims that for TCP, too, but the
// system cannot do it.)
kj::Maybe<kj::AsyncCapabilityStream&> asLocal(kj::AsyncIoStream& stream) {
  if (!isUnixSocket(stream)) return nullptr;
  return kj::dynamicDowncastIfAvailable<kj::AsyncCapabilityStream>(stream);
}

kj::Own<capnp::MessageStream> messagesOver(
    kj::AsyncIoStream& stream, kj::Maybe<kj::AsyncCapabilityStream&> local) {
  KJ_IF_MAYBE(carrying, local) return kj::heap<capnp::AsyncCapabilityMessageStream>(*carrying);
  return kj::heap<capnp::AsyncIoMessageStream>(stream);
}

kj::Own<kj::AsyncIoStream> tuned(kj::Own<kj::AsyncIoStream> stream, MessageLimits limits) {
  limitUnsent(*stream);
  KJ_IF_MAYBE(silence, limits.silence) breakOnSilence(*stream, *silence);
  return stream;
}

}  // namespace

bool isOfOtherEnd(const kj::Exception& exception) {
  // The prefix that Cap'n Proto adds to the text.
  return exception.getDescription().startsWith("remote exception: ");
}

MessageLimits limitsFor(const Placement& placement, kj::Maybe<kj::Duration> silence) {
  uint64_t largest = CALL_BYTES_MAX / sizeof(float);
  for (auto& slice: placement.slices) largest = kj::max(largest, slice.size);
  MessageLimits limits;
  limits.silence = silence;
  limits.message_bytes = kj::max(limits.message_bytes, largest * sizeof(float));
  // Twice the model, because a reconnected worker repeats its calls while the old ones are still
  // open.
  limits.unanswered_bytes += 2 * placement.parameters() * sizeof(float);
  return limits;
}

Peer::Peer(kj::Own<kj::AsyncIoStream> ownStream, MessageLimits limits)
    : stream(tuned(kj::mv(ownStream), limits)),
      local(asLocal(*stream)),
      messages(messagesOver(*stream, local)),
      network(outgoing, DESCRIPTORS_MAX, Side::CLIENT, readerOptions(limits)),
      system(capnp::makeRpcClient(network)) {}

Peer::Peer(
    kj::Own<kj::AsyncIoStream> ownStream, MessageLimits limits, capnp::Capability::Client bootstrap)
    : stream(tuned(kj::mv(ownStream), limits)),
      local(asLocal(*stream)),
      messages(messagesOver(*stream, local)),
      network(outgoing, DESCRIPTORS_MAX, Side::SERVER, readerOptions(limits)),
      system(capnp::makeRpcServer(network, kj::mv(bootstrap))) {
  system.setFlowLimit(limits.unanswered_bytes / sizeof(capnp::word));
}

capnp::Capability::Client Peer::bootstrap() {
  capnp::MallocMessageBuilder message(8);
  auto other = message.initRoot<VatId>();
  other.setSide(network.getSide() == Side::CLIENT ? Side::SERVER : Side::CLIENT);
  return system.bootstrap(other);
}

kj::Promise<void> serve(
    kj::Own<kj::AsyncIoStream> stream, MessageLimits limits, capnp::Capability::Client bootstrap) {
  auto peer = kj::heap<Peer>(kj::mv(stream), limits, bootstrap);
  auto gone = peer->onDisconnect();
  // The peer is destroyed before `bootstrap`, because queued answers refer to the memory of
  // `bootstrap`.
  return gone.attach(kj::mv(peer)).attach(kj::mv(bootstrap));
}

}  // namespace rpc
