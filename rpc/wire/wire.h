// rpc/wire/wire.h: messages on their way to a socket: knows when the kernel has taken them.
#pragma once

#include <capnp/serialize-async.h>
#include <kj/async-io.h>
#include <kj/timer.h>

namespace rpc {

// What a connection's kernel may hold that is not sent yet. On a slow link it is what goes ahead of
// the next call whatever that is; a fast one needs so much that it does not run dry while the io
// thread is somewhere else: 10 Gbit/s take 0.1 ms for it.
constexpr int UNSENT_BYTES_MAX = 128 << 10;

// Lets the kernel hold no more than that. For what is not TCP it does nothing: such a socket's
// buffer is as small already.
void limitUnsent(kj::AsyncIoStream& stream);

// Breaks the connection when the other end's kernel has acknowledged nothing for `silence`: of what
// was sent, or, to the next second or fifth of `silence`, of probes where there is nothing to send.
// Its machine is gone, or the way to it. (Otherwise the system tries for a quarter of an hour, or
// for ever.) Breaking is an ordinary disconnection. A process that is stopped or busy is not silent
// so, for its kernel acknowledges, until its buffers are full: what then takes nothing for so long
// breaks, too. For what is not TCP it does nothing.
void breakOnSilence(kj::AsyncIoStream& stream, kj::Duration silence);

// Passes messages on to another stream. All belongs to one event loop.
//
// A message that can no longer be sent because the other end is gone is dropped, and its write
// counts as done. Otherwise RPC would stop reading at once, and lose what the other end sent before
// it left. The end of what can be read tells that it is gone.
//
// Over TCP it keeps the socket's buffer as small as the way allows: the system's own grows until
// the queues on the way are full, and what is urgent then comes through all of them (bufferbloat).
class Wire final: public capnp::MessageStream {
public:
  // `inner` must outlive it; so must its socket, if it has one.
  Wire(capnp::MessageStream& inner, kj::Maybe<int> socket): inner(inner), socket(socket) {}
  KJ_DISALLOW_COPY(Wire);

  // How much is worth sending before one looks again what is urgent: what takes the wire 1 ms, as
  // far as its speed is known, within limits. Much less would cost more time for calls than it
  // saves (40 µs each, of both ends together), much more is what urgent values wait for, and what
  // the first of a call wait for its last.
  uint64_t window_bytes() const;

  // Resolves when all messages that were sent before are with the kernel. One at a time. Dropped
  // when the stream breaks: then it never resolves.
  kj::Promise<void> whenTaken();

  using MessageStream::tryReadMessage;
  kj::Promise<kj::Maybe<capnp::MessageReaderAndFds>> tryReadMessage(
      kj::ArrayPtr<kj::AutoCloseFd> fdSpace, capnp::ReaderOptions options,
      kj::ArrayPtr<capnp::word> scratchSpace) override {
    return inner.tryReadMessage(fdSpace, options, scratchSpace);
  }
  using MessageStream::writeMessage;
  kj::Promise<void> writeMessage(kj::ArrayPtr<const int> fds,
      kj::ArrayPtr<const kj::ArrayPtr<const capnp::word>> segments) override {
    return count(
        bytesOf(segments), kj::evalNow([&]() { return inner.writeMessage(fds, segments); }));
  }
  using MessageStream::writeMessages;
  kj::Promise<void> writeMessages(
      kj::ArrayPtr<kj::ArrayPtr<const kj::ArrayPtr<const capnp::word>>> messages) override {
    uint64_t bytes = 0;
    for (auto& message: messages) bytes += bytesOf(message);
    return count(bytes, kj::evalNow([&]() { return inner.writeMessages(messages); }));
  }
  kj::Maybe<int> getSendBufferSize() override { return inner.getSendBufferSize(); }
  kj::Promise<void> end() override { return inner.end(); }

private:
  kj::Promise<void> count(uint64_t bytes, kj::Promise<void> write);
  void fitBuffer();
  double rate_bytes_per_ns() const;
  static uint64_t bytesOf(kj::ArrayPtr<const kj::ArrayPtr<const capnp::word>> segments);

  capnp::MessageStream& inner;
  kj::Maybe<int> socket;
  uint64_t sinceFit_bytes = 0;  // written
  int buffer_bytes = 0;         // what the socket was told; 0: nothing
  const kj::MonotonicClock& clock = kj::systemPreciseMonotonicClock();
  kj::uint writing = 0;  // messages that the kernel has not taken whole
  // What was written lately, and the time for which it was being written.
  uint64_t written_bytes = 0;
  kj::Duration writingTime = 0 * kj::NANOSECONDS;
  kj::Maybe<kj::Own<kj::PromiseFulfiller<void>>> waiting;
};

}  // namespace rpc
