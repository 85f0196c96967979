#include "rpc/wire/acceptor.h"

#include <kj/debug.h>
#include <kj/refcount.h>
#include <kj/vector.h>
#include <sys/resource.h>
#include <unistd.h>

#include "rpc/wire/running_time.h"

namespace rpc {

namespace {

// Limits on strangers per listening socket: one of so many file descriptors, and at most so many.
constexpr uint DESCRIPTORS_PART = 8;
constexpr uint STRANGERS_MAX = 128;

// Between two attempts to accept without a free descriptor.
constexpr auto PAUSE = 100 * kj::MILLISECONDS;

// Knows whether the peer of a connection has opened a session, and how much it may send until then.
class Admission final: public kj::Refcounted {
public:
  Admission(uint64_t bytes, kj::Own<kj::PromiseFulfiller<void>> fulfiller)
      : left_bytes(bytes), fulfiller(kj::mv(fulfiller)) {}

  void admit() {
    admitted = true;
    fulfiller->fulfill();
  }
  // If so, no limit on bytes applies any more.
  bool isAdmitted() const { return admitted; }
  // Returns how much to read at most, for a read of at least `minBytes` and at most `maxBytes`.
  // Throws if the peer may not send `minBytes` more.
  size_t allowed(size_t minBytes, size_t maxBytes) const {
    KJ_REQUIRE(minBytes <= left_bytes, "a peer sends too much before it opens a session");
    return kj::min(maxBytes, left_bytes);
  }
  void count(size_t bytes) { left_bytes -= kj::min(left_bytes, bytes); }

private:
  uint64_t left_bytes;
  bool admitted = false;
  kj::Own<kj::PromiseFulfiller<void>> fulfiller;
};

// Passes calls on to the bootstrap capability. An answer that carries a capability is a session.
class Gate final: public capnp::Capability::Server {
public:
  Gate(capnp::Capability::Client inner, kj::Own<Admission> admission)
      : inner(kj::mv(inner)), admission(kj::mv(admission)) {}

  DispatchCallResult dispatchCall(uint64_t interface, uint16_t method,
      capnp::CallContext<capnp::AnyPointer, capnp::AnyPointer> context) override {
    auto params = context.getParams();
    auto request = inner.typelessRequest(interface, method, params.targetSize());
    request.set(params);
    context.releaseParams();
    auto done =
        request.send().then([this, context](capnp::Response<capnp::AnyPointer>&& response) mutable {
          auto size = response.targetSize();
          context.getResults(size).set(response);
          if (size.capCount > 0) admission->admit();
        });
    return {kj::mv(done), false};
  }

private:
  capnp::Capability::Client inner;
  kj::Own<Admission> admission;
};

// Passes on what goes over a connection, and limits how much a stranger sends.
class GuardedStream final: public kj::AsyncCapabilityStream {
public:
  GuardedStream(kj::Own<kj::AsyncIoStream> own, kj::Own<Admission> admission)
      : inner(kj::mv(own)),
        local(kj::dynamicDowncastIfAvailable<kj::AsyncCapabilityStream>(*inner)),
        admission(kj::mv(admission)) {}

  kj::Promise<size_t> tryRead(void* buffer, size_t minBytes, size_t maxBytes) override {
    if (admission->isAdmitted()) return inner->tryRead(buffer, minBytes, maxBytes);
    maxBytes = admission->allowed(minBytes, maxBytes);
    return inner->tryRead(buffer, minBytes, maxBytes).then([this](size_t n) {
      admission->count(n);
      return n;
    });
  }
  kj::Promise<ReadResult> tryReadWithFds(void* buffer, size_t minBytes, size_t maxBytes,
      kj::AutoCloseFd* fds, size_t fdsMax) override {
    if (admission->isAdmitted()) {
      return withDescriptors().tryReadWithFds(buffer, minBytes, maxBytes, fds, fdsMax);
    }
    maxBytes = admission->allowed(minBytes, maxBytes);
    return withDescriptors()
        .tryReadWithFds(buffer, minBytes, maxBytes, fds, fdsMax)
        .then([this](ReadResult&& result) {
          admission->count(result.byteCount);
          return result;
        });
  }
  kj::Promise<ReadResult> tryReadWithStreams(void* buffer, size_t minBytes, size_t maxBytes,
      kj::Own<AsyncCapabilityStream>* streams, size_t streamsMax) override {
    KJ_UNIMPLEMENTED("messages carry no streams");
  }

  kj::Promise<void> write(const void* buffer, size_t size) override {
    return inner->write(buffer, size);
  }
  kj::Promise<void> write(kj::ArrayPtr<const kj::ArrayPtr<const kj::byte>> pieces) override {
    return inner->write(pieces);
  }
  kj::Promise<void> writeWithFds(kj::ArrayPtr<const kj::byte> data,
      kj::ArrayPtr<const kj::ArrayPtr<const kj::byte>> more, kj::ArrayPtr<const int> fds) override {
    return withDescriptors().writeWithFds(data, more, fds);
  }
  kj::Promise<void> writeWithStreams(kj::ArrayPtr<const kj::byte> data,
      kj::ArrayPtr<const kj::ArrayPtr<const kj::byte>> more,
      kj::Array<kj::Own<AsyncCapabilityStream>> streams) override {
    KJ_UNIMPLEMENTED("messages carry no streams");
  }
  kj::Promise<void> whenWriteDisconnected() override { return inner->whenWriteDisconnected(); }

  void shutdownWrite() override { inner->shutdownWrite(); }
  void abortRead() override { inner->abortRead(); }
  void getsockopt(int level, int option, void* value, uint* length) override {
    inner->getsockopt(level, option, value, length);
  }
  void setsockopt(int level, int option, const void* value, uint length) override {
    inner->setsockopt(level, option, value, length);
  }
  void getsockname(struct sockaddr* address, uint* length) override {
    inner->getsockname(address, length);
  }
  void getpeername(struct sockaddr* address, uint* length) override {
    inner->getpeername(address, length);
  }
  kj::Maybe<int> getFd() const override { return inner->getFd(); }

private:
  kj::AsyncCapabilityStream& withDescriptors() { return KJ_REQUIRE_NONNULL(local); }

  kj::Own<kj::AsyncIoStream> inner;
  kj::Maybe<kj::AsyncCapabilityStream&> local;  // the same, if it carries descriptors
  kj::Own<Admission> admission;
};

// Accepts for as long as it lives.
class Acceptor final: private kj::TaskSet::ErrorHandler {
public:
  Acceptor(kj::Timer& timer, kj::ConnectionReceiver& receiver, MessageLimits limits,
      capnp::Capability::Client bootstrap, StrangerLimits strangerLimits)
      : timer(timer),
        receiver(receiver),
        limits(limits),
        bootstrap(kj::mv(bootstrap)),
        strangerLimits(strangerLimits),
        running(timer),
        pauseEnd(timer.now()),
        connections(*this) {}

  kj::Promise<void> accept() {
    return whenDue()
        .then([this]() { return receiver.accept(); })
        .then(
            [this](kj::Own<kj::AsyncIoStream>&& stream) {
              accepted++;
              // The one that waits for a place.
              return whenRoom().then(
                  [this, stream = kj::mv(stream)]() mutable { add(kj::mv(stream)); });
            },
            [this](kj::Exception&& e) -> kj::Promise<void> {
              if (e.getType() != kj::Exception::Type::OVERLOADED) return kj::mv(e);
              tellFull();
              return timer.afterDelay(PAUSE);
            })
        .then([this]() { return accept(); });
  }

private:
  // A connection whose peer has not opened a session. It counts as a stranger until it is
  // destroyed.
  struct Stranger {
    explicit Stranger(Acceptor& acceptor)
        : acceptor(acceptor),
          since(acceptor.timer.now()),
          dropped(kj::newPromiseAndFulfiller<void>()) {
      acceptor.strangers.add(this);
    }
    ~Stranger() {
      kj::Vector<Stranger*> others;
      for (auto other: acceptor.strangers) {
        if (other != this) others.add(other);
      }
      acceptor.strangers = kj::mv(others);
      KJ_IF_MAYBE(waiting, acceptor.waiting) (*waiting)->fulfill();
      acceptor.waiting = nullptr;
    }
    KJ_DISALLOW_COPY(Stranger);

    Acceptor& acceptor;
    const kj::TimePoint since;
    kj::PromiseFulfillerPair<void> dropped;
  };

  void add(kj::Own<kj::AsyncIoStream> stream) {
    auto admitted = kj::newPromiseAndFulfiller<void>();
    auto admission = kj::refcounted<Admission>(strangerLimits.bytes, kj::mv(admitted.fulfiller));
    auto stranger = kj::heap<Stranger>(*this);
    auto late = running.until(running.passed() + strangerLimits.patience)
                    .exclusiveJoin(kj::mv(stranger->dropped.promise))
                    .then([]() { return false; });
    auto limit =
        admitted.promise.then([]() { return true; })
            .exclusiveJoin(kj::mv(late))
            .then([stranger = kj::mv(stranger)](bool isAdmitted) mutable -> kj::Promise<void> {
              stranger = nullptr;
              if (isAdmitted) return kj::NEVER_DONE;
              return KJ_EXCEPTION(DISCONNECTED, "it did not open a session in time");
            });
    auto guarded = kj::heap<GuardedStream>(kj::mv(stream), kj::addRef(*admission));
    auto served = serve(kj::mv(guarded), limits, kj::heap<Gate>(bootstrap, kj::mv(admission)));
    connections.add(served.exclusiveJoin(kj::mv(limit)));
  }

  // Resolves when another connection may be accepted. KJ looks at sockets and timers only when it
  // has nothing else to do. Without a pause, strangers that come fast enough would prevent that.
  kj::Promise<void> whenDue() {
    auto now = timer.now();
    if (now >= pauseEnd) {
      accepted = 0;
      pauseEnd = now + strangerLimits.pause;
    }
    if (accepted < strangerLimits.accepted) return kj::READY_NOW;
    return timer.atTime(pauseEnd).then([this]() { return whenDue(); });
  }

  bool isFull() const { return strangers.size() >= strangerLimits.connections; }

  // Resolves when there is room for another stranger.
  kj::Promise<void> whenRoom() {
    if (!isFull()) return kj::READY_NOW;
    auto paf = kj::newPromiseAndFulfiller<void>();
    waiting = kj::mv(paf.fulfiller);
    auto& limit = strangerLimits.patienceWhenFull;
    auto drop =
        timer.atTime(strangers[0]->since + limit).then([this, limit]() -> kj::Promise<void> {
          if (isFull() && timer.now() - strangers[0]->since >= limit) {
            strangers[0]->dropped.fulfiller->fulfill();
          }
          return kj::NEVER_DONE;
        });
    return paf.promise.exclusiveJoin(kj::mv(drop)).then([this]() { return whenRoom(); });
  }

  // Once, for whoever wonders why a role does not join.
  void tellFull() {
    constexpr kj::StringPtr WORDS =
        "warning: no file descriptor is free, so new connections wait. Raise the limit with "
        "`ulimit -n`\n"_kj;
    if (!isTold) (void)!::write(STDERR_FILENO, WORDS.begin(), WORDS.size());
    isTold = true;
  }

  // A broken connection concerns only its peer, whose calls have failed.
  void taskFailed(kj::Exception&& exception) override {
    KJ_LOG(INFO, "a connection broke", exception);
  }

  kj::Timer& timer;
  kj::ConnectionReceiver& receiver;
  const MessageLimits limits;
  capnp::Capability::Client bootstrap;
  const StrangerLimits strangerLimits;
  RunningTime running;
  kj::TimePoint pauseEnd;
  uint accepted = 0;  // connections in the current pause
  bool isTold = false;
  kj::Vector<Stranger*> strangers;                         // the oldest first
  kj::Maybe<kj::Own<kj::PromiseFulfiller<void>>> waiting;  // for one of them to go
  kj::TaskSet connections;
};

}  // namespace

uint StrangerLimits::defaultConnections() {
  rlimit descriptors;
  KJ_SYSCALL(::getrlimit(RLIMIT_NOFILE, &descriptors));
  auto part = descriptors.rlim_cur / DESCRIPTORS_PART;
  return uint(kj::max(1ul, kj::min(part, rlim_t(STRANGERS_MAX))));
}

kj::Promise<void> serveAll(kj::Timer& timer, kj::ConnectionReceiver& receiver, MessageLimits limits,
    capnp::Capability::Client bootstrap, StrangerLimits strangers) {
  auto acceptor = kj::heap<Acceptor>(timer, receiver, limits, kj::mv(bootstrap), strangers);
  auto accepting = acceptor->accept();
  return accepting.attach(kj::mv(acceptor));
}

}  // namespace rpc
