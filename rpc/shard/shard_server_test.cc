#include "rpc/shard/shard_server.h"

#include <doctest/doctest.h>
#include <kj/async-io.h>
#include <kj/debug.h>

#include "rpc/testing/test_model.h"
#include "rpc/testing/test_server.h"
#include "rpc/wire/peer.h"

namespace rpc {
namespace {

TEST_CASE("ShardServer: n workers pushing rank + 1 over connections give the exact sums") {
  constexpr float RATE = 2;
  constexpr uint REPEATS = 3;
  // Below, at and above the slice size of 1,024 values, most not divisible by the number of
  // servers.
  auto keys = makeKeys({4, 1023, 1024, 1025, 10, 1, 48 * 1024 + 7});
  for (uint workers: {1, 2, 4}) {
    for (uint servers: {1, 2, 3}) {
      CAPTURE(workers);
      CAPTURE(servers);
      kj::EventLoop loop;
      kj::WaitScope scope(loop);
      auto placement = placeBalanced(keys, 4096, servers);
      TestUpdater updater(RATE);
      auto rounds = roundsOf("dist_sync", workers);
      kj::Vector<Link> links;
      kj::Vector<ShardSession::Client> sessions;  // of worker r with server s: [s * workers + r]
      for (uint s = 0; s < servers; s++) {
        auto server = newShardServer(placement, s, rounds, updater).service;
        for (uint rank = 0; rank < workers; rank++) {
          links.add(Link::connect(server));
          auto request = links.back().service.helloRequest();
          request.setRank(rank);
          request.setWorkers(workers);
          request.setMode(kj::str(rounds));
          request.setPlacement(placement.digest());
          request.setShard(s);
          sessions.add(request.send().getSession());
        }
      }
      for (SliceId id = 0; id < placement.slices.size(); id++) {
        auto& slice = placement.slices[id];
        auto request = sessions[slice.shard * workers].initializeRequest();
        Bench::set(request.initValues(1)[0], id, Bench::filled(slice.size, 1));
        request.send().wait(scope);
      }
      for (uint step = 0; step < REPEATS; step++) {
        kj::Vector<kj::Promise<void>> answers;
        for (SliceId id = 0; id < placement.slices.size(); id++) {
          auto& slice = placement.slices[id];
          // The last rank pushes first, so sums have to wait for the others.
          for (uint rank = workers; rank-- > 0;) {
            auto request = sessions[slice.shard * workers + rank].pushPullRequest();
            request.setStep(step);
            Bench::set(request.initGradients(1)[0], id, Bench::filled(slice.size, rank + 1));
            float expected = RATE * (step + 1) * workers * (workers + 1) / 2 + 1;
            answers.add(request.send().then(
                [&slice, expected, step](capnp::Response<ShardSession::PushPullResults>&& answer) {
                  CHECK(answer.getValues()[0].getVersion() == step + 1);
                  CHECK(all(answer, slice.size, expected));
                }));
          }
        }
        kj::joinPromises(answers.releaseAsArray()).wait(scope);
      }
    }
  }
}

TEST_CASE("ShardServer: refuses a worker that was started with another file, and says why") {
  Bench bench(makeKeys({10}), "dist_sync");
  auto link = Link::connect(bench.server);
  auto& service = link.service;
  CHECK(contains(bench.refusal(bench.hello(service, 0, 3)), "different numbers of workers"));
  CHECK(contains(bench.refusal(bench.hello(service, 2)), "no worker of this rank"));
  CHECK(contains(bench.refusal(bench.hello(service, 0, 2, 0, 1)), "divide the parameters"));
  CHECK(contains(bench.refusal(bench.hello(service, 0, 2, 1)), "expected another server here"));
  auto request = service.helloRequest();
  request.setMode("dist_async");
  CHECK(contains(bench.refusal(request.send()), "different kvstore modes"));
  CHECK(bench.refusal(bench.hello(service, 0)) == "");
}

TEST_CASE("ShardServer: wrong messages are refused, change nothing, and do not end the server") {
  Bench bench(makeKeys({10}), "dist_sync");
  auto link0 = Link::connect(bench.server);
  auto link1 = Link::connect(bench.server);
  auto worker0 = bench.open(link0, 0);
  auto worker1 = bench.open(link1, 1);
  CHECK(contains(bench.refusal(bench.push(worker0, 0, 0, 1)), "before the slice's initial values"));
  CHECK(contains(bench.refusal(worker0.startRequest().send()), "not all slices have values"));
  CHECK(contains(bench.refusal(bench.initialize(worker1, 0, 1)), "only rank 0"));
  bench.initialize(worker0, 0, 1).wait(bench.scope);
  CHECK(contains(bench.refusal(bench.initialize(worker0, 0, 2)), "already has"));

  auto nine = Bench::filled(9, 1);
  auto eleven = Bench::filled(11, 1);
  CHECK(contains(bench.refusal(bench.push(worker0, 0, 0, nine)), "slice's size"));
  CHECK(contains(bench.refusal(bench.push(worker0, 0, 0, eleven)), "slice's size"));
  CHECK(contains(bench.refusal(bench.push(worker0, 0, 0, nullptr)), "slice's size"));
  CHECK(contains(bench.refusal(bench.push(worker0, 0, 1, 1)), "not its next"));
  CHECK(contains(bench.refusal(bench.push(worker0, 7, 0, eleven)), "no such slice"));
  CHECK(contains(bench.refusal(bench.pull(worker0, 7)), "no such slice"));
  auto odd = worker0.pushPullRequest();
  odd.initGradients(1)[0].setFloats(eleven.asBytes().slice(0, 41));
  CHECK(contains(bench.refusal(odd.send()), "slice's size"));
  auto oddValues = worker0.initializeRequest();
  oddValues.initValues(1)[0].setFloats(eleven.asBytes().slice(0, 41));
  CHECK(contains(bench.refusal(oddValues.send()), "whole float32 values"));

  auto answer0 = bench.push(worker0, 0, 0, 1);
  auto answer1 = bench.push(worker1, 0, 0, 1).wait(bench.scope);
  CHECK(all(answer1, 10, 3));
  CHECK(all(answer0.wait(bench.scope), 10, 3));
}

TEST_CASE("ShardServer: a trace contains no slice that the server does not have") {
  Bench bench(makeKeys({10}), "dist_sync");
  TraceLane lane({}, 10);
  ShardTrace trace(lane, 2, 1);
  auto traced =
      newShardServer(bench.placement, 0, bench.rounds, bench.updater, nullptr, trace).service;
  auto link = Link::connect(traced);
  auto worker = bench.open(link, 0, 1);
  for (SliceId id: {1, 7, 1 << 30}) {
    CHECK(contains(bench.refusal(bench.push(worker, id, 0, Bench::filled(10, 1))), "no such"));
  }
  CHECK(lane.all().size() == 0);
  bench.push(worker, 0, 0, 1);
  bench.scope.poll();
  CHECK(lane.all().size() == 2);  // arrived, counted
}

TEST_CASE("ShardServer: start is answered when every worker has called it") {
  Bench bench(makeKeys({10}), "dist_async");
  auto link0 = Link::connect(bench.server);
  auto link1 = Link::connect(bench.server);
  auto worker1 = bench.open(link1, 1);
  auto early = bench.pull(worker1, 0);
  CHECK(!early.poll(bench.scope));
  auto worker0 = bench.open(link0, 0, 1.0f);
  auto started0 = worker0.startRequest().send();
  CHECK(!started0.poll(bench.scope));
  CHECK(all(early.wait(bench.scope), 10, 1));
  worker1.startRequest().send().wait(bench.scope);
  started0.wait(bench.scope);
}

TEST_CASE(
    "ShardServer: a gradient counts although its worker went away in the middle of the round") {
  Bench bench(makeKeys({5000, 3}), "dist_sync");
  auto link0 = Link::connect(bench.server);
  auto worker0 = bench.open(link0, 0, 1.0f);
  {
    auto link1 = Link::connect(bench.server);
    auto worker1 = bench.open(link1, 1);
    for (SliceId id = 0; id < bench.placement.slices.size(); id++) {
      CHECK(!bench.push(worker1, id, 0, 10).poll(bench.scope));
    }
    link1.peer = nullptr;
    link1.served.wait(bench.scope);
  }
  for (SliceId id = 0; id < bench.placement.slices.size(); id++) {
    auto answer = bench.push(worker0, id, 0, 1).wait(bench.scope);
    CHECK(all(answer, bench.placement.slices[id].size, 12));
  }

  SUBCASE("and one that comes back and repeats its push is answered, not counted again") {
    auto link1 = Link::connect(bench.server);
    auto worker1 = bench.open(link1, 1);
    auto answer = bench.push(worker1, 0, 0, 10).wait(bench.scope);
    CHECK(answer.getValues()[0].getVersion() == 1);
    CHECK(all(answer, bench.placement.slices[0].size, 12));
  }
}

TEST_CASE("ShardServer: a second hello of a rank ends its first session") {
  Bench bench(makeKeys({10}), "dist_sync");
  auto link = Link::connect(bench.server);
  auto first = bench.open(link, 0, 1.0f);
  auto waiting = bench.push(first, 0, 0, 1);
  CHECK(!waiting.poll(bench.scope));
  auto second = bench.open(link, 0);
  CHECK(contains(
      bench.refusal(bench.push(first, 0, 0, 1)), "another worker with this rank has connected"));
  auto repeated = bench.push(second, 0, 0, 1);
  auto other = bench.open(link, 1);
  bench.push(other, 0, 0, 1).wait(bench.scope);
  CHECK(all(repeated.wait(bench.scope), 10, 3));
}

TEST_CASE(
    "ShardServer: bytes that are not messages, and messages that are too large, end only their "
    "connection") {
  Bench bench(makeKeys({10}), "dist_sync", 1);
  auto good = Link::connect(bench.server);
  auto worker = bench.hello(good.service, 0, 1).wait(bench.scope).getSession();
  bench.initialize(worker, 0, 1).wait(bench.scope);

  auto check = [&](kj::ArrayPtr<const kj::byte> bytes) {
    auto pipe = kj::newTwoWayPipe();
    auto served = serve(kj::mv(pipe.ends[0]), {}, bench.server);
    pipe.ends[1]->write(bytes.begin(), bytes.size()).wait(bench.scope);
    auto farewell = pipe.ends[1]->readAllBytes().eagerlyEvaluate(nullptr);
    served.wait(bench.scope);
    farewell.wait(bench.scope);
  };
  // A header that announces 2^30 words in one segment; a segment count beyond all bounds.
  constexpr uint32_t LARGE[] = {0, 1u << 30};
  constexpr uint32_t MANY[] = {0xfffffff0, 1};
  check(kj::ArrayPtr<const uint32_t>(LARGE).asBytes());
  check(kj::ArrayPtr<const uint32_t>(MANY).asBytes());

  CHECK(all(bench.push(worker, 0, 0, 1).wait(bench.scope), 10, 2));
}

TEST_CASE("ShardServer: a timer waits for only a few of many queued pushes") {
  constexpr uint PUSHES = 100;
  auto io = kj::setupAsyncIo();
  pollOften(io.waitScope);
  auto placement = placeBalanced(makeKeys({10}), 4096, 1);
  auto rounds = roundsOf("dist_async", 1);
  CountingUpdater updater;
  auto link = Link::connect(newShardServer(placement, 0, rounds, updater).service);
  auto hello = link.service.helloRequest();
  hello.setWorkers(1);
  hello.setMode(kj::str(rounds));
  hello.setPlacement(placement.digest());
  auto session = hello.send().wait(io.waitScope).getSession();
  auto values = Bench::filled(10, 0);
  auto initialize = session.initializeRequest();
  Bench::set(initialize.initValues(1)[0], 0, values);
  initialize.send().wait(io.waitScope);

  auto fired = updater.untilFired(io.provider->getTimer());
  kj::Vector<kj::Promise<void>> answers;
  for (uint step = 0; step < PUSHES; step++) {
    auto request = session.pushPullRequest();
    request.setStep(step);
    Bench::set(request.initGradients(1)[0], 0, values);
    answers.add(request.send().ignoreResult());
  }
  CHECK(fired.wait(io.waitScope) < PUSHES / 4);
  kj::joinPromises(answers.releaseAsArray()).wait(io.waitScope);
  CHECK(updater.updates == PUSHES);
}

}  // namespace
}  // namespace rpc
