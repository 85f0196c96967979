#include "rpc/wire/wire.h"

// The system's: the C library's header lacks the shortest round trip in tcp_info.
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>

namespace rpc {

namespace {

constexpr auto WINDOW_TIME = 1 * kj::MILLISECONDS;
constexpr uint64_t WINDOW_BYTES_MIN = 16 << 10;
constexpr uint64_t WINDOW_BYTES_MAX = 256 << 10;

// What was written before that much is soon forgotten.
constexpr uint64_t MEMORY_BYTES = 1 << 20;

// A socket's buffer has what the way takes in its shortest round trip, and for so long more: enough
// that a link does not run dry between two turns of the event loop.
constexpr auto QUEUED_TIME = 1 * kj::MILLISECONDS;
constexpr kj::uint SEGMENTS_MIN = 12;
// Where that is more, the system's own buffer stays: a long and fast way needs it, and a short and
// fast one has no queues.
constexpr double BUFFER_BYTES_MAX = 192 << 10;
// Looked at whenever so much was written.
constexpr uint64_t FIT_BYTES = 256 << 10;

}  // namespace

void limitUnsent(kj::AsyncIoStream& stream) {
  KJ_IF_MAYBE(fd, stream.getFd()) {
    // Fails where there is no TCP.
    (void)::setsockopt(
        *fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &UNSENT_BYTES_MAX, sizeof(UNSENT_BYTES_MAX));
  }
}

void breakOnSilence(kj::AsyncIoStream& stream, kj::Duration silence) {
  KJ_IF_MAYBE(fd, stream.getFd()) {
    // With a time-out of the user's, the system looks at that rather than counts probes.
    int silence_ms = silence / kj::MILLISECONDS, on = 1;
    int probe_s = kj::max(1, silence_ms / 5000);
    auto set = [&](int level, int option, int value) {
      // Fails where there is no TCP.
      (void)::setsockopt(*fd, level, option, &value, sizeof(value));
    };
    set(IPPROTO_TCP, TCP_USER_TIMEOUT, silence_ms);
    set(IPPROTO_TCP, TCP_KEEPIDLE, probe_s);
    set(IPPROTO_TCP, TCP_KEEPINTVL, probe_s);
    set(SOL_SOCKET, SO_KEEPALIVE, on);
  }
}

uint64_t Wire::bytesOf(kj::ArrayPtr<const kj::ArrayPtr<const capnp::word>> segments) {
  uint64_t bytes = 0;
  for (auto& segment: segments) bytes += segment.asBytes().size();
  return bytes;
}

// The promise of a write comes when the kernel has taken it: at once, if it has room.
kj::Promise<void> Wire::count(uint64_t bytes, kj::Promise<void> write) {
  writing++;
  auto begun = clock.now();
  auto over = [this]() {
    if (--writing > 0) return;
    KJ_IF_MAYBE(fulfiller, waiting) {
      (*fulfiller)->fulfill();
    }
    waiting = nullptr;
  };
  auto taken = [this, bytes, begun, over]() {
    // Long enough ago counts half, and half of that.
    if (written_bytes > MEMORY_BYTES) {
      written_bytes /= 2;
      writingTime = writingTime / 2;
    }
    written_bytes += bytes;
    writingTime += clock.now() - begun;
    sinceFit_bytes += bytes;
    if (sinceFit_bytes >= FIT_BYTES) fitBuffer();
    over();
  };
  return write.then(kj::mv(taken), [over](kj::Exception&& e) {
    if (e.getType() != kj::Exception::Type::DISCONNECTED) kj::throwFatalException(kj::mv(e));
    over();
  });
}

void Wire::fitBuffer() {
  sinceFit_bytes = 0;
  KJ_IF_MAYBE(fd, socket) {
    tcp_info info = {};
    socklen_t size = sizeof(info);
    // Fails where there is no TCP.
    if (::getsockopt(*fd, IPPROTO_TCP, TCP_INFO, &info, &size) < 0) {
      socket = nullptr;
      return;
    }
    // Not tcpi_delivery_rate: that is the last burst's.
    auto time = info.tcpi_min_rtt * kj::MICROSECONDS + QUEUED_TIME;
    double bytes = rate_bytes_per_ns() * (time / kj::NANOSECONDS);
    // With less than some segments the ends wait for each other's timers. Those of a loopback are
    // of 64 KiB: it is never touched.
    bytes = kj::max(bytes, double(SEGMENTS_MIN) * info.tcpi_snd_mss);
    // What was set once cannot be given back to the system.
    if (bytes > BUFFER_BYTES_MAX && buffer_bytes == 0) return;
    int fitting = kj::min(bytes, BUFFER_BYTES_MAX);
    if (fitting > buffer_bytes / 5 * 4 && fitting < buffer_bytes / 4 * 5) return;
    buffer_bytes = fitting;
    (void)::setsockopt(*fd, SOL_SOCKET, SO_SNDBUF, &fitting, sizeof(fitting));
  }
}

// Of the wire, while there is something to write.
double Wire::rate_bytes_per_ns() const {
  return written_bytes / kj::max(1.0, double(writingTime / kj::NANOSECONDS));
}

uint64_t Wire::window_bytes() const {
  // What the kernel took at first says nothing of the wire.
  if (written_bytes < MEMORY_BYTES / 2) return WINDOW_BYTES_MAX;
  double window = rate_bytes_per_ns() * (WINDOW_TIME / kj::NANOSECONDS);
  return kj::max(WINDOW_BYTES_MIN, uint64_t(kj::min(window, double(WINDOW_BYTES_MAX))));
}

kj::Promise<void> Wire::whenTaken() {
  // Messages follow one another through the event queue: when that is empty, one is being written,
  // or all have been.
  return kj::evalLast([this]() -> kj::Promise<void> {
    if (writing == 0) return kj::READY_NOW;
    auto paf = kj::newPromiseAndFulfiller<void>();
    waiting = kj::mv(paf.fulfiller);
    return paf.promise.then([this]() { return whenTaken(); });
  });
}

}  // namespace rpc
