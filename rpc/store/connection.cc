#include "rpc/store/connection.h"

#include <errno.h>
#include <kj/debug.h>

#include <cstring>

#include "rpc/wire/payload.h"
#include "rpc/wire/running_time.h"

namespace rpc {

namespace {

// The pause between the first two attempts, and the longest one.
constexpr auto PAUSE_MIN = 10 * kj::MILLISECONDS;
constexpr auto PAUSE_MAX = 500 * kj::MILLISECONDS;

constexpr kj::StringPtr UNREACHABLE = "could not be reached for "_kj;

// An exception keeps only its text.
bool mentions(const kj::Exception& exception, kj::StringPtr what) {
  return strstr(exception.getDescription().cStr(), what.cStr()) != nullptr;
}

// Whether nobody listens at the address, because the server's process has ended.
bool isRefused(const kj::Exception& exception) {
  return mentions(exception, strerror(ECONNREFUSED));
}

// Whether further attempts are useless: the server was reached and refuses, or this process cannot
// open another connection.
bool isFinal(const kj::Exception& exception) {
  return exception.getType() == kj::Exception::Type::FAILED ||
         exception.getType() == kj::Exception::Type::UNIMPLEMENTED || isOfOtherEnd(exception) ||
         (mentions(exception, strerror(EMFILE)) && !mentions(exception, strerror(ENFILE)));
}

// Attempts to open one session.
class Opening {
public:
  Opening(const Placement& placement, const Rounds& rounds, uint rank, Servers& servers,
      uint server, kj::Maybe<kj::Exception> loss)
      : placement(placement),
        rounds(rounds),
        rank(rank),
        servers(servers),
        server(server),
        loss(kj::mv(loss)),
        time(servers.timer) {}

  kj::Promise<kj::Own<Connection>> attempt();

private:
  kj::Promise<kj::Own<Connection>> hello(ShardService::Client shard, kj::Maybe<kj::Own<Peer>> peer);
  kj::Promise<kj::Own<Connection>> failed(kj::Exception&& exception);

  const Placement& placement;
  const Rounds& rounds;
  const uint rank;
  Servers& servers;
  const uint server;
  kj::Maybe<kj::Exception> loss;
  RunningTime time;  // since the first attempt
  kj::Duration pause = PAUSE_MIN;
};

kj::Promise<kj::Own<Connection>> Opening::attempt() {
  KJ_IF_MAYBE(own, servers.own) {
    if (server == rank) return hello(*own, nullptr);
  }
  auto connection =
      kj::evalNow([this]() { return servers.connect(server); }).then([this](auto peer) {
        auto shard = peer->bootstrap().template castAs<ShardService>();
        return hello(kj::mv(shard), kj::mv(peer));
      });
  auto tooLate = time.until(servers.patience).then([]() -> kj::Own<Connection> {
    kj::throwFatalException(KJ_EXCEPTION(OVERLOADED, "no answer in time"));
  });
  return connection.exclusiveJoin(kj::mv(tooLate)).catch_([this](kj::Exception&& e) {
    return failed(kj::mv(e));
  });
}

kj::Promise<kj::Own<Connection>> Opening::hello(
    ShardService::Client shard, kj::Maybe<kj::Own<Peer>> peer) {
  auto request = shard.helloRequest();
  request.setRank(rank);
  request.setWorkers(rounds.workers);
  request.setMode(kj::str(rounds));
  request.setPlacement(placement.digest());
  request.setShard(server);
  request.setSince(servers.since);
  return request.send().then(
      [peer = kj::mv(peer)](capnp::Response<ShardService::HelloResults>&& response) mutable {
        return kj::heap<Connection>(kj::mv(peer), response.getSession());
      });
}

kj::Promise<kj::Own<Connection>> Opening::failed(kj::Exception&& exception) {
  if (isFinal(exception)) return kj::mv(exception);
  if (isRefused(exception)) {
    KJ_IF_MAYBE(former, loss) return kj::mv(*former);
    return kj::mv(exception);
  }
  if (time.passed() + pause >= servers.patience) {
    return kj::Exception(kj::Exception::Type::DISCONNECTED, __FILE__, __LINE__,
        kj::str("it ", UNREACHABLE, servers.patience / kj::SECONDS,
            " s (cluster.silence_timeout_s). Check its machine and the network between"));
  }
  auto wait = time.until(time.passed() + pause);
  pause = kj::min(2 * pause, PAUSE_MAX);
  return wait.then([this]() { return attempt(); });
}

}  // namespace

bool isUnreachable(const kj::Exception& exception) {
  return mentions(exception, UNREACHABLE);
}

Connection::Connection(kj::Maybe<kj::Own<Peer>> ownPeer, ShardSession::Client session)
    : peer(kj::mv(ownPeer)),
      opened(kj::mv(session)),
      failed(kj::newPromiseAndFulfiller<void>()),
      calls(*this) {
  KJ_IF_MAYBE(p, peer) {
    calls.add((*p)->onDisconnect().then(
        []() -> kj::Promise<void> { return KJ_EXCEPTION(DISCONNECTED, "Peer disconnected."); }));
  }
}

const char* Connection::transport() const {
  KJ_IF_MAYBE(p, peer) return (*p)->isLocal() ? "unix" : "tcp";
  return "in_process";
}

kj::Promise<uint64_t> Connection::whenTaken() {
  KJ_IF_MAYBE(p, peer) {
    auto& wire = (*p)->wire();
    return wire.whenTaken().then([&wire]() { return wire.window_bytes(); });
  }
  return kj::evalLater([]() { return CALL_BYTES_MAX; });
}

kj::Promise<kj::Own<Connection>> openSession(const Placement& placement, const Rounds& rounds,
    uint rank, Servers& servers, uint server, kj::Maybe<kj::Exception> loss) {
  auto opening = kj::heap<Opening>(placement, rounds, rank, servers, server, kj::mv(loss));
  auto connection = opening->attempt();
  return connection.attach(kj::mv(opening));
}

}  // namespace rpc
