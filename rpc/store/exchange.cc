#include "rpc/store/exchange.h"

#include <kj/debug.h>

#include "rpc/kvstore.capnp.h"
#include "rpc/store/connection.h"
#include "rpc/wire/payload.h"

namespace rpc {

namespace {

// Puts Cap'n Proto and promises around an Outbox: the sessions with all servers, and the calls in
// flight.
class Exchange final: private kj::TaskSet::ErrorHandler {
public:
  Exchange(Handover& handover, Servers ownServers)
      : handover(handover),
        servers(kj::mv(ownServers)),
        outbox(handover.placement, handover.rank),
        answers(handover.rounds.answers()),
        lines(kj::heapArray<Line>(servers.names.size())),
        traced(kj::heapArray<uint64_t>(
            handover.trace == nullptr ? 0 : handover.placement.slices.size())),
        keeping(*this) {
    for (auto& pushes: traced) pushes = 0;
  }

  ~Exchange() noexcept(false) {
    // Nothing more will be answered, so the compute thread must not wait.
    auto lock = handover.state.lockExclusive();
    lock->fail(KJ_EXCEPTION(DISCONNECTED, "this worker's connections to the servers were closed"));
    lock->bell = nullptr;
  }

  kj::Promise<void> run();

private:
  // The state of one server.
  struct Line {
    kj::Maybe<kj::Own<Connection>> connection;
    bool awaitsWire = false;  // waits until the kernel has taken the calls so far
    bool wasOpened = false;   // by this connection or an earlier one
  };

  kj::Promise<void> carryOut();
  kj::Promise<void> keep(uint server, kj::Maybe<kj::Exception> loss);
  kj::Promise<void> share(uint server, Connection& connection);
  kj::Promise<void> reconnect(uint server, kj::Exception&& loss);
  void send(uint server);

  kj::Promise<void> call(ShardSession::Client& session, const Outbox::Call& call);
  kj::Promise<void> initialize(ShardSession::Client& session, const Outbox::Call& call);
  kj::Promise<void> pull(ShardSession::Client& session, const Outbox::Call& call);
  kj::Promise<void> push(ShardSession::Client& session, const Outbox::Call& call);
  template <typename Result>
  void take(const Outbox::Call& call, uint64_t atLeastVersion, const codec::Encoding& encoding,
      Result&& result);
  void answered(uint server, const Outbox::Call& call, kj::Duration roundTrip);
  void record(TracePoint station, const Outbox::Call& call);

  template <typename T>
  kj::ArrayPtr<T> part(kj::ArrayPtr<T> array, SliceId id) const {
    return handover.placement.slices[id].of(array);
  }
  // The server of a call that has slices.
  uint serverOf(const Outbox::Call& call) const {
    return handover.placement.slices[call.slices[0]].shard;
  }
  kj::Promise<void> naming(uint server, kj::Promise<void> promise);
  void taskFailed(kj::Exception&& exception) override { failed->reject(kj::mv(exception)); }

  Handover& handover;
  Servers servers;
  Outbox outbox;
  const kj::MonotonicClock& clock = kj::systemPreciseMonotonicClock();
  kj::Vector<Order> orders;       // taken from the handover; keeps its memory from turn to turn
  const codec::Encoding answers;  // of pushes
  SliceRuns runs;                 // of the call that is made
  kj::Own<kj::PromiseFulfiller<void>> failed;
  kj::Array<Line> lines;
  kj::Array<uint64_t> traced;  // per slice: pushes that the trace has as sent; empty without trace
  kj::TaskSet keeping;
};

kj::Promise<void> Exchange::run() {
  auto paf = kj::newPromiseAndFulfiller<void>();
  failed = kj::mv(paf.fulfiller);
  for (auto server: kj::indices(lines)) keeping.add(naming(server, keep(server, nullptr)));
  return carryOut().exclusiveJoin(kj::mv(paf.promise)).catch_([this](kj::Exception&& exception) {
    handover.state.lockExclusive()->fail(kj::cp(exception));
    kj::throwFatalException(kj::mv(exception));
  });
}

kj::Promise<void> Exchange::carryOut() {
  auto ready = handover.take(orders);
  if (orders.size() > 0) {
    for (auto& order: orders) outbox.add(order);
    orders.clear();
    for (auto server: kj::indices(lines)) send(server);
  }
  return ready.then([this]() { return carryOut(); });
}

// Keeps a session with a server for as long as the server can be reached.
kj::Promise<void> Exchange::keep(uint server, kj::Maybe<kj::Exception> loss) {
  return openSession(
      handover.placement, handover.rounds, handover.rank, servers, server, kj::mv(loss))
      .then([this, server](kj::Own<Connection>&& opened) {
        auto broken = opened->whenBroken();
        auto begun = share(server, *opened).then([this, server]() -> kj::Promise<void> {
          lines[server].wasOpened = true;
          outbox.opened(server);
          send(server);
          return kj::NEVER_DONE;
        });
        lines[server].connection = kj::mv(opened);
        return begun.exclusiveJoin(kj::mv(broken))
            .catch_([this, server](kj::Exception&& exception) {
              return reconnect(server, kj::mv(exception));
            });
      });
}

// Shares the worker's memory with a server if both are on one machine and support it.
kj::Promise<void> Exchange::share(uint server, Connection& connection) {
  auto transport = connection.transport();
  kj::Promise<bool> sharing = false;
  // Only the first session decides this, because the compute thread cannot change later how it
  // pushes.
  if (!lines[server].wasOpened) {
    KJ_IF_MAYBE(shared, handover.shared) sharing = (*shared)->share(server, connection.session());
  }
  return sharing.then([this, server, &connection, transport](bool isShared) {
    handover.state.lockExclusive()->traffic[server].transport =
        isShared ? "shared_memory" : transport;
    if (!isShared) return;
    auto watching = connection.session().watchRequest(capnp::MessageSize{4, 0}).send();
    connection.add(watching.ignoreResult());
  });
}

kj::Promise<void> Exchange::reconnect(uint server, kj::Exception&& loss) {
  lines[server] = {.wasOpened = lines[server].wasOpened};
  outbox.lost(server);
  if (loss.getType() != kj::Exception::Type::DISCONNECTED) return kj::mv(loss);
  // A connection within one machine breaks only when one of its processes ends.
  if (handover.sharesWith(server)) return kj::mv(loss);
  handover.state.lockExclusive()->traffic[server].reconnects++;
  return keep(server, kj::mv(loss));
}

// Sends calls until the outbox has no more that may be sent now.
void Exchange::send(uint server) {
  auto& line = lines[server];
  KJ_IF_MAYBE(connection, line.connection) {
    bool sent = false;
    for (;;) {
      KJ_IF_MAYBE(next, outbox.next(server)) {
        sent = true;
        auto begun = clock.now();
        // On the heap, because the continuation of the answer also uses the call.
        auto sending = kj::heap(kj::mv(*next));
        record(TracePoint::SENT, *sending);
        auto answer = call((*connection)->session(), *sending);
        (*connection)->add(answer.then([this, server, begun, sent = kj::mv(sending)]() {
          answered(server, *sent, clock.now() - begun);
        }));
      } else {
        break;
      }
    }
    if (!sent || line.awaitsWire) return;
    line.awaitsWire = true;
    (*connection)->add((*connection)->whenTaken().then([this, server](uint64_t window_bytes) {
      lines[server].awaitsWire = false;
      outbox.taken(server, window_bytes);
      send(server);
    }));
  }
}

// Makes a call. Resolves when its answer is in `parameters`.
kj::Promise<void> Exchange::call(ShardSession::Client& session, const Outbox::Call& call) {
  switch (call.what) {
    case Outbox::Call::INITIALIZE:
      return initialize(session, call);
    case Outbox::Call::PULL:
      return pull(session, call);
    case Outbox::Call::PUSH:
      return push(session, call);
    case Outbox::Call::START:
      return session.startRequest(capnp::MessageSize{4, 0}).send().ignoreResult();
    case Outbox::Call::REST: {
      auto request = session.restRequest(capnp::MessageSize{5, 0});
      request.setNumber(call.number);
      return request.send().ignoreResult();
    }
  }
  KJ_UNREACHABLE;
}

kj::Promise<void> Exchange::initialize(ShardSession::Client& session, const Outbox::Call& call) {
  runs.begin({});
  for (auto id: call.slices) runs.add(id, 0, part(handover.parameters, id).asBytes());
  auto all = runs.all();
  auto request = session.initializeRequest();
  auto values = request.initValues(all.size());
  for (auto i: kj::indices(all)) {
    values[i].setSlice(all[i].id);
    // Copying is good enough, because this happens once.
    values[i].setFloats(all[i].bytes);
  }
  return request.send().ignoreResult();
}

kj::Promise<void> Exchange::pull(ShardSession::Client& session, const Outbox::Call& call) {
  auto request = session.pullRequest();
  auto slices = request.initSlices(call.slices.size());
  for (auto i: kj::indices(call.slices)) slices.set(i, call.slices[i]);
  return request.send().then([this, &call](capnp::Response<ShardSession::PullResults>&& result) {
    take(call, 0, {}, result);
  });
}

kj::Promise<void> Exchange::push(ShardSession::Client& session, const Outbox::Call& call) {
  uint64_t bytes = 0;
  runs.begin(handover.encoder.encoding());
  auto encode = [&]() {
    for (auto id: call.slices) {
      // For a repeated call, the encoder returns what was sent before.
      auto payload = handover.encoder.encode(id, call.number, part(handover.gradients, id));
      runs.add(id, call.number, payload);
      bytes += payload.size();
    }
  };
  KJ_IF_MAYBE(exception, kj::runCatchingExceptions(encode)) {
    // The gradients are this worker's, so the message must not name the server.
    failed->reject(kj::mv(*exception));
    return kj::NEVER_DONE;
  }
  auto all = runs.all();
  auto request = session.pushPullRequest(sizeOfList(all, Payload::STAYS));
  request.setStep(call.number);
  auto gradients = request.initGradients(all.size());
  for (auto i: kj::indices(all)) {
    gradients[i].setSlice(all[i].id);
    setFloats(gradients[i], all[i].bytes, Payload::STAYS);
  }
  return request.send().then(
      [this, &call, bytes](capnp::Response<ShardSession::PushPullResults>&& result) {
        take(call, handover.rounds.countsEveryPush() ? call.number + 1 : 0, answers, result);
        handover.state.lockExclusive()->traffic[serverOf(call)].pushed_bytes += bytes;
      });
}

// Writes an answer to `parameters`. A wrong answer ends the store, and then nobody uses
// `parameters` any more.
template <typename Result>
void Exchange::take(const Outbox::Call& call, uint64_t atLeastVersion,
    const codec::Encoding& encoding, Result&& result) {
  uint64_t bytes = 0;
  size_t next = 0;  // index of the call's next slice
  for (auto entry: result.getValues()) {
    // Read only once, because each access counts against the message's traversal limit.
    capnp::Data::Reader floats = entry.getFloats();
    KJ_REQUIRE(next < call.slices.size(), "an answer has more slices than its call", next);
    auto id = call.slices[next++];
    auto target = part(handover.parameters, id);
    if (encoding.isFloats()) {
      // The entry may hold several consecutive slices.
      while (target.asBytes().size() < floats.size() && next < call.slices.size() &&
             call.slices[next] == call.slices[next - 1] + 1) {
        target = kj::arrayPtr(target.begin(), part(handover.parameters, call.slices[next++]).end());
      }
    }
    {
      KJ_CONTEXT("an answer", id);
      encoding.check(floats, target.size());
    }
    KJ_REQUIRE(entry.getVersion() >= atLeastVersion,
        "the answer to a push has values from before the push", id, entry.getVersion(),
        atLeastVersion);
    encoding.decode(floats, target);
    bytes += floats.size();
    if (id == 0) {
      auto lock = handover.state.lockExclusive();
      lock->updates = kj::max(lock->updates, entry.getVersion());
    }
  }
  KJ_REQUIRE(next == call.slices.size(), "an answer has fewer slices than its call", next,
      call.slices.size());
  handover.state.lockExclusive()->traffic[serverOf(call)].pulled_bytes += bytes;
}

void Exchange::answered(uint server, const Outbox::Call& call, kj::Duration roundTrip) {
  record(TracePoint::RETURNED, call);
  bool ends = outbox.answered(server, call);
  {
    auto lock = handover.state.lockExclusive();
    if (ends) lock->completed++;
    auto& traffic = lock->traffic[server];
    if (call.what == Outbox::Call::PUSH) {
      for (auto id: call.slices) lock->answered[id] = call.number + 1;
      traffic.calls++;
      traffic.roundTrips += roundTrip;
      traffic.roundTripMax = kj::max(traffic.roundTripMax, roundTrip);
    }
    traffic.waitingMax_bytes = kj::max(traffic.waitingMax_bytes, outbox.waitingMax_bytes(server));
  }
  // Other calls may have waited for this answer.
  send(server);
}

void Exchange::record(TracePoint station, const Outbox::Call& call) {
  KJ_IF_MAYBE(trace, handover.trace) {
    if (call.what != Outbox::Call::PUSH) return;
    for (auto id: call.slices) {
      if (station == TracePoint::SENT) {
        // A push that is repeated after its connection broke counts as sent since the first time.
        if (traced[id] > call.number) continue;
        traced[id] = call.number + 1;
      }
      trace->io.add(station, handover.rank, call.number, id);
    }
  }
}

kj::Promise<void> Exchange::naming(uint server, kj::Promise<void> promise) {
  return promise.catch_([this, server](kj::Exception&& exception) {
    bool lost = exception.getType() == kj::Exception::Type::DISCONNECTED;
    auto why = exception.getDescription();
    if (why == "Peer disconnected.") why = "it closed its connection";
    auto wayOut =
        lost && !isUnreachable(exception) ? "; if it has ended, see what it wrote last"_kj : ""_kj;
    auto text = kj::str(lost ? "lost " : "", servers.names[server], ": ", why, wayOut);
    kj::throwFatalException(kj::Exception(exception.getType(), kj::heapString(exception.getFile()),
        exception.getLine(), kj::mv(text)));
  });
}

}  // namespace

kj::Promise<void> exchange(Handover& handover, Servers servers) {
  KJ_REQUIRE(servers.names.size() == handover.placement.shards.size());
  auto exchange = kj::heap<Exchange>(handover, kj::mv(servers));
  auto running = exchange->run();
  return running.attach(kj::mv(exchange));
}

}  // namespace rpc
