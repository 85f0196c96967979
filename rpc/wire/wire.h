// rpc/wire/wire.h: passes messages to a socket, and reports when the kernel has taken them.
#pragma once

#include <capnp/serialize-async.h>
#include <kj/async-io.h>
#include <kj/timer.h>

namespace rpc {

// The most unsent bytes that the kernel may hold per connection. On a slow link, these bytes go
// ahead of the next call, however urgent that call is. A fast link needs them so that it does not
// run dry while the io thread does something else: they last 0.1 ms at 10 Gbit/s.
constexpr int UNSENT_BYTES_MAX = 128 << 10;

// Whether `stream` is a Unix socket.
bool isUnixSocket(kj::AsyncIoStream& stream);

// Sets UNSENT_BYTES_MAX for a TCP connection. Does nothing for other sockets, whose buffers are
// about as small anyway.
void limitUnsent(kj::AsyncIoStream& stream);

// Breaks a TCP connection when the other end's kernel has acknowledged nothing for `silence`. Then
// the other machine, or the network to it, is down. (By default, the system tries for a quarter of
// an hour, or forever.) If there is nothing to send, the kernel sends probes, and notices silence
// up to a second or a fifth of `silence` later. A broken connection looks like an ordinary
// disconnect.
//
// A stopped or busy process does not count as silent, because its kernel acknowledges until its
// buffers are full. If the process then reads nothing for `silence`, the connection breaks, too.
// Does nothing for other sockets.
void breakOnSilence(kj::AsyncIoStream& stream, kj::Duration silence);

// Passes messages on to another stream. For one event loop.
//
// A message that can no longer be sent, because the other end has disconnected, is dropped, and its
// write counts as done. Otherwise RPC would stop reading immediately, and lose the other end's last
// messages. The end of the incoming stream then reports that the other end has disconnected.
//
// Over TCP, the wire keeps the socket's buffer as small as the network path allows. The system's
// own buffer grows until the queues on the path are full, and then urgent messages have to pass
// through all of these queues (bufferbloat).
class Wire final: public capnp::MessageStream {
public:
  // `inner` must outlive it; so must its socket, if it has one.
  Wire(capnp::MessageStream& inner, kj::Maybe<int> socket): inner(inner), socket(socket) {}
  KJ_DISALLOW_COPY(Wire);

  // How many bytes to send before the caller decides again what is most urgent: as many as the wire
  // sends in 1 ms at its measured speed, within limits. With much less, calls would cost more time
  // than they save (40 µs per call, both ends together). With much more, urgent values would wait
  // longer, and so would the first slice of a call for the last one.
  uint64_t window_bytes() const;

  // Resolves when the kernel has taken all messages that were sent before. Only one promise at a
  // time. Never resolves if the stream breaks first.
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
  int buffer_bytes = 0;         // the size that was set on the socket; 0: none
  const kj::MonotonicClock& clock = kj::systemPreciseMonotonicClock();
  kj::uint writing = 0;  // messages that the kernel has not taken whole
  // How much was written recently, and how long that took.
  uint64_t written_bytes = 0;
  kj::Duration writingTime = 0 * kj::NANOSECONDS;
  kj::Maybe<kj::Own<kj::PromiseFulfiller<void>>> waiting;
};

}  // namespace rpc
