#include <doctest/doctest.h>
#include <kj/async-io.h>
#include <kj/debug.h>

#include <cstring>

#include "rpc/testing/test_schedule.h"
#include "rpc/testing/test_server.h"

namespace rpc {
namespace {

constexpr uint64_t SCHEDULES_OF_EACH = 50;

// ShardServers behind Cap'n Proto connections, in one event loop. After every call, the loop runs
// until it is idle.
class ConnectedServers final: public Servers {
public:
  ConnectedServers(const Setting& setting, uint64_t seed)
      : setting(setting), dice(seed), updater(setting.newUpdater()) {
    for (auto shard: kj::indices(setting.placement.shards)) {
      servers.add(newShardServer(setting.placement, shard, setting.rounds, *updater).service);
    }
    for (uint rank = 0; rank < setting.rounds.workers; rank++) reconnect(rank);
    for (auto id: kj::indices(setting.placement.slices)) {
      auto& slice = setting.placement.slices[id];
      auto request = sessionOf(0, slice.shard).initializeRequest();
      Bench::set(request.initValues(1)[0], id, slice.of(setting.initial.asPtr().asConst()));
      request.send().wait(scope);
    }
    kj::Vector<kj::Promise<void>> starts;
    for (auto& connection: connections) {
      starts.add(connection->session.startRequest().send().ignoreResult());
    }
    kj::joinPromises(starts.releaseAsArray()).wait(scope);
  }

  void deliver(Call& call, kj::ArrayPtr<const bool>) override {
    send(call, sessionOf(call.rank, call.shard));
    KJ_REQUIRE(answers[call.index].refusal == "", answers[call.index].refusal);
  }

  bool deliverLate(Call& call, kj::ArrayPtr<const bool>) override {
    for (auto& old: former) {
      if (old->rank != call.rank || old->shard != call.shard || old->number != call.session) {
        continue;
      }
      send(call, old->session);
      KJ_REQUIRE(
          contains(answers[call.index].refusal, "another worker with this rank has connected"));
    }
    return false;
  }

  void reconnect(uint rank) override {
    for (auto shard: kj::indices(servers)) {
      bool isOwn = setting.isOwn(rank, shard);
      if (isOwn && hasSession(rank, shard)) continue;
      auto link = isOwn ? Link{kj::NEVER_DONE, kj::Own<Peer>(), servers[shard]}
                        : Link::connect(servers[shard]);
      auto connection = kj::heap<Connection>(
          Connection{rank, uint(shard), 0, kj::mv(link), ShardSession::Client(nullptr)});
      auto request = connection->link.service.helloRequest();
      request.setRank(rank);
      request.setWorkers(setting.rounds.workers);
      request.setMode(kj::str(setting.rounds));
      request.setPlacement(setting.placement.digest());
      request.setShard(shard);
      connection->session = request.send().wait(scope).getSession();
      bool replaced = false;
      for (auto& current: connections) {
        if (current->rank != rank || current->shard != shard) continue;
        connection->number = current->number + 1;
        // The former session is closed, or stays open for a while and is refused.
        if (dice.onceIn(2)) former.add(kj::mv(current));
        current = kj::mv(connection);
        replaced = true;
        break;
      }
      if (!replaced) connections.add(kj::mv(connection));
    }
    scope.poll();
  }

  bool isAnswered(const Call& call) override {
    auto& answer = answers[call.index];
    KJ_REQUIRE(answer.refusal == "", answer.refusal);
    return answer.isThere;
  }

  Answered take(Call& call, uint entry) override {
    auto& answer = answers[call.index];
    auto take = [&](auto values) -> Answered {
      uint next = 0;
      for (auto value: values) {
        capnp::Data::Reader data = value.getFloats();
        auto floats =
            kj::arrayPtr(reinterpret_cast<const float*>(data.begin()), data.size() / sizeof(float));
        // Consecutive slices can share an entry.
        while (floats.size() > 0) {
          uint64_t size = setting.placement.slices[call.slices[next]].size;
          if (next++ == entry) return {value.getVersion(), floats.slice(0, size)};
          floats = floats.slice(size, floats.size());
        }
      }
      KJ_FAIL_REQUIRE("an answer lacks a slice", entry);
    };
    KJ_IF_MAYBE(pushed, answer.pushed) return take(pushed->getValues());
    return take(KJ_ASSERT_NONNULL(answer.pulled).getValues());
  }

  void compare(kj::ArrayPtr<const kj::Own<SliceModel>>) override {}

private:
  struct Connection {
    uint rank;
    uint shard;
    uint number;  // of the rank's session
    Link link;
    ShardSession::Client session;
  };

  struct Answer {
    bool isThere = false;
    kj::String refusal;
    kj::Maybe<capnp::Response<ShardSession::PushPullResults>> pushed;
    kj::Maybe<capnp::Response<ShardSession::PullResults>> pulled;
    kj::Promise<void> coming = nullptr;
  };

  bool hasSession(uint rank, uint shard) {
    for (auto& connection: connections) {
      if (connection->rank == rank && connection->shard == shard) return true;
    }
    return false;
  }

  ShardSession::Client& sessionOf(uint rank, uint shard) {
    for (auto& connection: connections) {
      if (connection->rank == rank && connection->shard == shard) return connection->session;
    }
    KJ_FAIL_REQUIRE("no such connection", rank, shard);
  }

  void send(Call& call, ShardSession::Client& session) {
    while (answers.size() <= call.index) answers.add();
    uint index = call.index;
    answers[index].coming = carryOut(call, session)
                                .then([this, index]() { answers[index].isThere = true; },
                                    [this, index](kj::Exception&& exception) {
                                      answers[index].refusal = kj::str(exception.getDescription());
                                    })
                                .eagerlyEvaluate(nullptr);
    scope.poll();
  }

  kj::Promise<void> carryOut(Call& call, ShardSession::Client& session) {
    uint index = call.index;
    if (call.what == Call::REST) {
      auto request = session.restRequest();
      request.setNumber(call.number);
      return request.send().ignoreResult();
    }
    if (call.what == Call::PULL) {
      auto request = session.pullRequest();
      auto slices = request.initSlices(call.slices.size());
      for (auto i: kj::indices(call.slices)) slices.set(i, call.slices[i]);
      return request.send().then(
          [this, index](auto&& result) { answers[index].pulled = kj::mv(result); });
    }
    auto request = session.pushPullRequest();
    request.setStep(call.number);
    auto gradients = request.initGradients(call.slices.size());
    for (auto i: kj::indices(call.slices)) {
      Bench::set(gradients[i], call.slices[i], call.gradients[i]);
    }
    return request.send().then(
        [this, index](auto&& result) { answers[index].pushed = kj::mv(result); });
  }

  const Setting& setting;
  Dice dice;
  kj::EventLoop loop;
  kj::WaitScope scope{loop};
  kj::Own<Updater> updater;
  kj::Vector<ShardService::Client> servers;
  kj::Vector<kj::Own<Connection>> connections;
  kj::Vector<kj::Own<Connection>> former;
  kj::Vector<Answer> answers;  // of each call
};

TEST_CASE("ShardServer: schedules with broken connections and repeats give the model's answers") {
  Happened all;
  for (uint way = 0; way < WAYS; way++) {
    for (uint64_t seed = 1; seed <= SCHEDULES_OF_EACH; seed++) {
      KJ_CONTEXT("the schedule of way and seed", way, seed);
      Dice dice(seed * WAYS + way);
      auto setting = Setting::draw(Way(way), dice);
      ConnectedServers servers(setting, seed);
      all.add(runSchedule(setting, servers, seed, seed));
    }
  }
  MESSAGE("pushed ", all.pushed, ", dropped ", all.dropped, ", waited ", all.waited, ", repeated ",
      all.repeats, ", breaks ", all.breaks);
  CHECK(all.dropped > 0);
  CHECK(all.waited > 0);
  CHECK(all.repeats > 0);
  CHECK(all.breaks > 0);
}

}  // namespace
}  // namespace rpc
