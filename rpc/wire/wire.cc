#include "rpc/wire/wire.h"

#include <kj/debug.h>
// The kernel's header, because tcp_info of the C library lacks the shortest round trip.
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>

namespace rpc {

namespace {

constexpr auto WINDOW_TIME = 1 * kj::MILLISECONDS;
constexpr uint64_t WINDOW_BYTES_MIN = 16 << 10;
constexpr uint64_t WINDOW_BYTES_MAX = 256 << 10;

// How many written bytes the measured speed takes into account. Older writes are soon forgotten.
constexpr uint64_t MEMORY_BYTES = 1 << 20;

// A socket's buffer holds the bytes that the network path takes in its shortest round trip plus
// this time. That is enough to keep a link busy between two turns of the event loop.
constexpr auto QUEUED_TIME = 1 * kj::MILLISECONDS;
constexpr kj::uint SEGMENTS_MIN = 12;
// If a path needs a larger buffer than this, the system's own one stays: a long and fast path needs
// that one, and a short and fast path has no queues.
constexpr double BUFFER_BYTES_MAX = 192 << 10;
// The buffer is adjusted each time this many bytes were written.
constexpr uint64_t FIT_BYTES = 256 << 10;

}  // namespace

bool isUnixSocket(kj::AsyncIoStream& stream) {
  int domain = AF_UNSPEC;
  KJ_IF_MAYBE(fd, stream.getFd()) {
    socklen_t size = sizeof(domain);
    KJ_SYSCALL(::getsockopt(*fd, SOL_SOCKET, SO_DOMAIN, &domain, &size));
  }
  return domain == AF_UNIX;
}

void limitUnsent(kj::AsyncIoStream& stream) {
  KJ_IF_MAYBE(fd, stream.getFd()) {
    // Fails where there is no TCP.
    (void)::setsockopt(
        *fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &UNSENT_BYTES_MAX, sizeof(UNSENT_BYTES_MAX));
  }
}

void breakOnSilence(kj::AsyncIoStream& stream, kj::Duration silence) {
  KJ_IF_MAYBE(fd, stream.getFd()) {
    // If TCP_USER_TIMEOUT is set, the system uses it instead of counting probes.
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

// A write's promise resolves when the kernel has taken the bytes: immediately if its buffer has
// room.
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
    // Older writes count half, then a quarter, and so on.
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
    // tcpi_delivery_rate would be the speed of the last burst only.
    auto time = info.tcpi_min_rtt * kj::MICROSECONDS + QUEUED_TIME;
    double bytes = rate_bytes_per_ns() * (time / kj::NANOSECONDS);
    // With less than a few segments, the ends would wait for each other's timers. Segments of the
    // loopback have 64 KiB, so its buffers always stay as they are.
    bytes = kj::max(bytes, double(SEGMENTS_MIN) * info.tcpi_snd_mss);
    // Once a size was set, the system does not choose one again.
    if (bytes > BUFFER_BYTES_MAX && buffer_bytes == 0) return;
    int fitting = kj::min(bytes, BUFFER_BYTES_MAX);
    if (fitting > buffer_bytes / 5 * 4 && fitting < buffer_bytes / 4 * 5) return;
    buffer_bytes = fitting;
    (void)::setsockopt(*fd, SOL_SOCKET, SO_SNDBUF, &fitting, sizeof(fitting));
  }
}

// The speed of the wire while there is something to write.
double Wire::rate_bytes_per_ns() const {
  return written_bytes / kj::max(1.0, double(writingTime / kj::NANOSECONDS));
}

uint64_t Wire::window_bytes() const {
  // The first bytes only fill the kernel's buffer, so they do not show the speed of the wire.
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
