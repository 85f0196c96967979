// rpc/testing/test_server.h: runs a server and its connections in one event loop, for tests of its
// calls.
#pragma once

#include <kj/async-io.h>
#include <kj/debug.h>

#include <cstring>
#include <initializer_list>

#include "rpc/shard/shard_server.h"
#include "rpc/testing/test_model.h"
#include "rpc/wire/peer.h"

namespace rpc {

// One worker's connection to one server, over a pipe. Everything runs in the test's event loop.
struct Link {
  kj::Promise<void> served;
  kj::Own<Peer> peer;
  ShardService::Client service;

  static Link connect(ShardService::Client server, MessageLimits limits = {}) {
    auto pipe = kj::newTwoWayPipe();
    auto served = serve(kj::mv(pipe.ends[0]), limits, kj::mv(server)).eagerlyEvaluate(nullptr);
    auto peer = kj::heap<Peer>(kj::mv(pipe.ends[1]), limits);
    auto service = peer->bootstrap().castAs<ShardService>();
    return {kj::mv(served), kj::mv(peer), kj::mv(service)};
  }
};

// A server of two workers, and the objects that it was made from.
struct Bench {
  kj::EventLoop loop;
  kj::WaitScope scope{loop};
  Placement placement;
  Rounds rounds;
  TestUpdater updater{1};
  ShardService::Client server;

  Bench(kj::ArrayPtr<const Key> keys, kj::StringPtr modeName, uint workers = 2)
      : placement(placeBalanced(keys, 4096, 1)),
        rounds(roundsOf(modeName, workers)),
        server(newShardServer(placement, 0, rounds, updater).service) {}

  capnp::RemotePromise<ShardService::HelloResults> hello(ShardService::Client& service, uint rank,
      uint workers = 2, uint shard = 0, kj::Maybe<uint64_t> digest = nullptr) {
    auto request = service.helloRequest();
    request.setRank(rank);
    request.setWorkers(workers);
    request.setMode(kj::str(rounds));
    request.setPlacement(digest.orDefault(placement.digest()));
    request.setShard(shard);
    return request.send();
  }

  // Opens the session of `rank`. With `value`, also initializes all values to it.
  ShardSession::Client open(Link& link, uint rank, kj::Maybe<float> value = nullptr) {
    auto session = hello(link.service, rank).wait(scope).getSession();
    KJ_IF_MAYBE(v, value) {
      for (SliceId id = 0; id < placement.slices.size(); id++) {
        initialize(session, id, *v).wait(scope);
      }
    }
    return session;
  }

  kj::Promise<void> initialize(ShardSession::Client& session, SliceId id, float value) {
    auto values = filled(placement.slices[id].size, value);
    auto request = session.initializeRequest();
    set(request.initValues(1)[0], id, values);
    return request.send().ignoreResult();
  }

  capnp::RemotePromise<ShardSession::PushPullResults> push(
      ShardSession::Client& session, SliceId id, uint64_t step, kj::ArrayPtr<const float> values) {
    auto request = session.pushPullRequest();
    request.setStep(step);
    set(request.initGradients(1)[0], id, values);
    return request.send();
  }

  capnp::RemotePromise<ShardSession::PushPullResults> push(
      ShardSession::Client& session, SliceId id, uint64_t step, float value) {
    return push(session, id, step, filled(placement.slices[id].size, value));
  }

  // Pushes gradients of `value` for several slices in one call.
  capnp::RemotePromise<ShardSession::PushPullResults> pushAll(ShardSession::Client& session,
      uint64_t step, std::initializer_list<SliceId> ids, float value) {
    auto request = session.pushPullRequest();
    request.setStep(step);
    auto gradients = request.initGradients(ids.size());
    for (uint i = 0; i < ids.size(); i++) {
      SliceId id = ids.begin()[i];
      set(gradients[i], id, filled(placement.slices[id].size, value));
    }
    return request.send();
  }

  capnp::RemotePromise<ShardSession::PullResults> pull(ShardSession::Client& session, SliceId id) {
    auto request = session.pullRequest();
    request.initSlices(1).set(0, id);
    return request.send();
  }

  static void set(SliceFloats::Builder entry, SliceId id, kj::ArrayPtr<const float> values) {
    entry.setSlice(id);
    entry.setFloats(values.asBytes());
  }

  // Returns the text of the exception that the promise rejects with.
  template <typename Promise>
  kj::String refusal(Promise&& promise) {
    kj::String text;
    KJ_IF_MAYBE(exception, kj::runCatchingExceptions([&]() { promise.wait(scope); })) {
      text = kj::str(exception->getDescription());
    }
    return text;
  }

  static kj::Array<float> filled(uint64_t size, float value) {
    auto values = kj::heapArray<float>(size);
    for (auto& v: values) v = value;
    return values;
  }
};

// Changes no value, and counts its calls.
class CountingUpdater final: public Updater {
public:
  uint updates = 0;

  // Returns how many updates happen before a timer that is due at the first of them. Call once.
  kj::Promise<uint> untilFired(kj::Timer& timer) {
    return begun.promise.then([&timer]() { return timer.afterDelay(0 * kj::NANOSECONDS); })
        .then([this]() { return updates; });
  }

  uint stateArrays(const Slice&) const override { return 0; }
  void update(const Slice&, const Round&, kj::ArrayPtr<const float>, kj::ArrayPtr<float>,
      kj::ArrayPtr<float>) override {
    if (updates++ == 0) begun.fulfiller->fulfill();
  }

private:
  kj::PromiseFulfillerPair<void> begun = kj::newPromiseAndFulfiller<void>();
};

// Whether all values of an answer's entry are `value`.
template <typename Answer>
bool all(const Answer& answer, uint64_t size, float value, uint entry = 0) {
  auto expected = Bench::filled(size, value);
  return answer.getValues()[entry].getFloats() == expected.asBytes();
}

inline bool contains(kj::StringPtr text, kj::StringPtr part) {
  return strstr(text.cStr(), part.cStr()) != nullptr;
}

}  // namespace rpc
