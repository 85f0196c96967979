#include "rpc/wire/acceptor.h"

#include <arpa/inet.h>
#include <errno.h>
#include <kj/debug.h>
#include <kj/vector.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>

#include "configs/language/warning.h"
#include "rpc/wire/opening.h"
#include "rpc/wire/running_time.h"
#include "rpc/wire/wire.h"

namespace rpc {

namespace {

// Limits on strangers per listening socket: one per DESCRIPTORS_PART file descriptors of the
// process, and at most STRANGERS_MAX.
constexpr uint DESCRIPTORS_PART = 8;
constexpr uint STRANGERS_MAX = 128;
// The strangers at all listening sockets of the process together get one of this many equal parts
// of its file descriptors.
constexpr uint SHARED_DESCRIPTORS_PART = 2;

rlim_t descriptorsOfProcess() {
  rlimit descriptors;
  KJ_SYSCALL(::getrlimit(RLIMIT_NOFILE, &descriptors));
  return descriptors.rlim_cur;
}

// How many listening sockets of this process accept connections now. A process with several servers
// has one thread per server.
std::atomic<uint> acceptors = 0;

// The pause between two attempts to accept a connection without a free descriptor.
constexpr auto PAUSE = 100 * kj::MILLISECONDS;

// Returns the user that is at the other end of a Unix socket; null for other connections.
kj::Maybe<uid_t> userOf(kj::AsyncIoStream& stream) {
  if (!isUnixSocket(stream)) return nullptr;
  ucred credentials;
  kj::uint size = sizeof(credentials);
  stream.getsockopt(SOL_SOCKET, SO_PEERCRED, &credentials, &size);
  return credentials.uid;
}

// Returns the address of the other end's machine. Returns "this machine" for a Unix socket, and if
// the other end has disconnected.
kj::String machineOf(kj::AsyncIoStream& stream) {
  sockaddr_storage address = {};
  uint size = sizeof(address);
  char text[INET6_ADDRSTRLEN] = {};
  KJ_IF_MAYBE(e, kj::runCatchingExceptions([&]() {
                stream.getpeername(reinterpret_cast<sockaddr*>(&address), &size);
                auto ipv4 = reinterpret_cast<const sockaddr_in*>(&address);
                auto ipv6 = reinterpret_cast<const sockaddr_in6*>(&address);
                if (address.ss_family == AF_INET) {
                  ::inet_ntop(AF_INET, &ipv4->sin_addr, text, sizeof(text));
                } else if (address.ss_family == AF_INET6) {
                  ::inet_ntop(AF_INET6, &ipv6->sin6_addr, text, sizeof(text));
                }
              })) {
    // It has already disconnected.
    KJ_LOG(INFO, *e);
  }
  return text[0] == '\0' ? kj::str("this machine") : kj::str(text);
}

// Accepts for as long as it lives.
class Acceptor final: private kj::TaskSet::ErrorHandler {
public:
  Acceptor(kj::Timer& timer, kj::ConnectionReceiver& receiver, MessageLimits limits,
      capnp::Capability::Client bootstrap, const Identity& own, StrangerLimits strangerLimits,
      kj::Maybe<TellRefused&> tell)
      : timer(timer),
        receiver(receiver),
        limits(limits),
        bootstrap(kj::mv(bootstrap)),
        own(own),
        strangerLimits(strangerLimits),
        tell(tell),
        running(timer),
        pauseEnd(timer.now()),
        connections(*this) {
    acceptors++;
  }
  ~Acceptor() { acceptors--; }
  KJ_DISALLOW_COPY(Acceptor);

  kj::Promise<void> accept() {
    return whenDue()
        .then([this]() { return receiver.accept(); })
        .then(
            [this](kj::Own<kj::AsyncIoStream>&& stream) {
              accepted++;
              // At most one accepted connection waits for a place.
              return whenRoom().then(
                  [this, stream = kj::mv(stream)]() mutable { add(kj::mv(stream)); });
            },
            [this](kj::Exception&& e) -> kj::Promise<void> {
              if (e.getType() != kj::Exception::Type::OVERLOADED) return kj::mv(e);
              tellFull(e);
              return timer.afterDelay(PAUSE);
            })
        .then([this]() { return accept(); });
  }

private:
  // A connection whose other end has not proven who it is. Counted as long as it lives.
  struct Stranger {
    explicit Stranger(Acceptor& acceptor)
        : acceptor(acceptor),
          since(acceptor.running.passed()),
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
    const kj::Duration since;  // in acceptor.running
    kj::PromiseFulfillerPair<void> dropped;
  };

  void add(kj::Own<kj::AsyncIoStream> stream) {
    auto stranger = kj::heap<Stranger>(*this);
    using Opened = kj::Promise<kj::Own<kj::AsyncIoStream>>;
    auto late = running.until(running.passed() + strangerLimits.patience)
                    .exclusiveJoin(kj::mv(stranger->dropped.promise))
                    .then([]() -> Opened {
                      return KJ_EXCEPTION(FAILED, "it did not prove in time who it is");
                    });
    auto machine = machineOf(*stream);
    auto opened = kj::evalNow([&]() -> Opened {
      KJ_IF_MAYBE(user, userOf(*stream)) {
        if (*user != ::geteuid() && *user != 0) {
          return KJ_EXCEPTION(FAILED, "it belongs to another user of this machine");
        }
      }
      return openAsListener(kj::mv(stream), own);
    });
    connections.add(
        opened.exclusiveJoin(kj::mv(late))
            .catch_([this, machine = kj::mv(machine)](kj::Exception&& e) -> Opened {
              // A port scanner may close at once.
              if (e.getType() == kj::Exception::Type::FAILED) tellRefused(machine, e);
              return kj::mv(e);
            })
            .then([this, stranger = kj::mv(stranger)](kj::Own<kj::AsyncIoStream> stream) mutable {
              stranger = nullptr;
              return serve(kj::mv(stream), limits, bootstrap);
            }));
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

  bool isFull() const {
    auto share = descriptorsOfProcess() / SHARED_DESCRIPTORS_PART / acceptors;
    return strangers.size() >= kj::max(1ul, kj::min(share, rlim_t(strangerLimits.connections)));
  }

  // Resolves when there is room for another stranger.
  kj::Promise<void> whenRoom() {
    if (!isFull()) return kj::READY_NOW;
    auto paf = kj::newPromiseAndFulfiller<void>();
    waiting = kj::mv(paf.fulfiller);
    auto& limit = strangerLimits.patienceWhenFull;
    auto drop =
        running.until(strangers[0]->since + limit).then([this, limit]() -> kj::Promise<void> {
          if (isFull() && running.passed() - strangers[0]->since >= limit) {
            strangers[0]->dropped.fulfiller->fulfill();
          }
          return kj::NEVER_DONE;
        });
    return paf.promise.exclusiveJoin(kj::mv(drop)).then([this]() { return whenRoom(); });
  }

  // tellFull() and tellRefused() each warn once, for users who wonder why a role does not join.
  void tellFull(const kj::Exception& why) {
    bool isOwnLimit = strstr(why.getDescription().cStr(), strerror(EMFILE)) != nullptr &&
                      strstr(why.getDescription().cStr(), strerror(ENFILE)) == nullptr;
    if (!hasToldFull) {
      configs::warn(isOwnLimit
                        ? kj::str("no file descriptor is free, so new connections wait. Raise the ",
                              "limit with `ulimit -n`")
                        : kj::str("new connections wait: ", why.getDescription()));
    }
    hasToldFull = true;
  }
  void tellRefused(kj::StringPtr machine, const kj::Exception& why) {
    auto sentence = kj::str("a connection from ", machine, " was refused: ", why.getDescription());
    KJ_IF_MAYBE(t, tell) (*t)(sentence);
    if (!hasToldRefused) {
      configs::warn(kj::str(sentence, ". Further refused connections will not be reported"));
    }
    hasToldRefused = true;
  }

  // A broken connection concerns only its peer, whose calls have failed.
  void taskFailed(kj::Exception&& exception) override {
    KJ_LOG(INFO, "a connection broke", exception);
  }

  kj::Timer& timer;
  kj::ConnectionReceiver& receiver;
  const MessageLimits limits;
  capnp::Capability::Client bootstrap;
  const Identity& own;
  const StrangerLimits strangerLimits;
  kj::Maybe<TellRefused&> tell;
  RunningTime running;
  kj::TimePoint pauseEnd;
  uint accepted = 0;  // connections in the period that ends at pauseEnd
  bool hasToldFull = false;
  bool hasToldRefused = false;
  kj::Vector<Stranger*> strangers;                         // the oldest first
  kj::Maybe<kj::Own<kj::PromiseFulfiller<void>>> waiting;  // until one of them leaves
  kj::TaskSet connections;
};

}  // namespace

uint StrangerLimits::defaultConnections() {
  auto part = descriptorsOfProcess() / DESCRIPTORS_PART;
  return uint(kj::max(1ul, kj::min(part, rlim_t(STRANGERS_MAX))));
}

kj::Promise<void> serveAll(kj::Timer& timer, kj::ConnectionReceiver& receiver, MessageLimits limits,
    capnp::Capability::Client bootstrap, const Identity& own, StrangerLimits strangers,
    kj::Maybe<TellRefused&> tellRefused) {
  auto acceptor =
      kj::heap<Acceptor>(timer, receiver, limits, kj::mv(bootstrap), own, strangers, tellRefused);
  auto accepting = acceptor->accept();
  return accepting.attach(kj::mv(acceptor));
}

}  // namespace rpc
