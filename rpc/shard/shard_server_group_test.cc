#include <doctest/doctest.h>

#include "rpc/testing/test_server.h"

namespace rpc {
namespace {

TEST_CASE("ShardServer: a call carries several slices, and is answered when the last one is due") {
  // One slice that is sent by reference, one that is too small for that, and one of an odd size.
  Bench bench(makeKeys({1000, 10, 7}), "dist_sync");
  constexpr uint64_t SIZES[] = {1000, 10, 7};
  auto link0 = Link::connect(bench.server);
  auto link1 = Link::connect(bench.server);
  auto worker0 = bench.hello(link0.service, 0).wait(bench.scope).getSession();
  auto worker1 = bench.open(link1, 1);
  auto pullAll = worker1.pullRequest();
  pullAll.setSlices({0, 1, 2});
  auto pulled = pullAll.send();
  bench.initialize(worker0, 0, 1).wait(bench.scope);
  CHECK(!pulled.poll(bench.scope));
  auto rest = worker0.initializeRequest();
  auto values = rest.initValues(2);
  for (SliceId id: {1, 2}) Bench::set(values[id - 1], id, Bench::filled(SIZES[id], 1));
  rest.send().wait(bench.scope);
  auto initial = pulled.wait(bench.scope);
  REQUIRE(initial.getValues().size() == 3);
  for (SliceId id: {0, 1, 2}) CHECK(all(initial, SIZES[id], 1, id));

  auto together = bench.pushAll(worker0, 0, {0, 1, 2}, 10);
  // Workers need not group their slices in the same way.
  CHECK(all(bench.push(worker1, 0, 0, 1).wait(bench.scope), 1000, 12));
  CHECK(!together.poll(bench.scope));
  auto others = bench.pushAll(worker1, 0, {1, 2}, 1).wait(bench.scope);
  auto answer = together.wait(bench.scope);
  REQUIRE(answer.getValues().size() == 3);
  REQUIRE(others.getValues().size() == 2);
  for (SliceId id: {0, 1, 2}) {
    CHECK(answer.getValues()[id].getVersion() == 1);
    CHECK(all(answer, SIZES[id], 12, id));
  }
  for (SliceId id: {1, 2}) CHECK(all(others, SIZES[id], 12, id - 1));

  SUBCASE("and a repeat counts only the slices that were not pushed before") {
    CHECK(!bench.push(worker0, 1, 1, 1).poll(bench.scope));
    auto repeat = bench.pushAll(worker0, 1, {0, 1, 2}, 1);
    auto last = bench.pushAll(worker1, 1, {0, 1, 2}, 1).wait(bench.scope);
    auto first = repeat.wait(bench.scope);
    for (SliceId id: {0, 1, 2}) {
      CHECK(all(first, SIZES[id], 14, id));
      CHECK(all(last, SIZES[id], 14, id));
    }
  }
}

TEST_CASE("ShardServer: consecutive slices share an entry") {
  // Slices of whole cache lines are consecutive in memory. The last key's slice is not.
  Bench bench(makeKeys({16, 32, 48, 5, 16}), "dist_async", 1);
  auto link = Link::connect(bench.server);
  auto worker = bench.hello(link.service, 0, 1).wait(bench.scope).getSession();
  auto initialize = worker.initializeRequest();
  Bench::set(initialize.initValues(1)[0], 0, Bench::filled(117, 1));
  initialize.send().wait(bench.scope);

  auto gradients = [&](uint64_t step, SliceId first, uint64_t floats) {
    auto request = worker.pushPullRequest();
    request.setStep(step);
    Bench::set(request.initGradients(1)[0], first, Bench::filled(floats, 1));
    return request.send();
  };
  auto answer = gradients(0, 1, 32 + 48 + 5).wait(bench.scope);
  REQUIRE(answer.getValues().size() == 2);
  CHECK(all(answer, 80, 2, 0));
  CHECK(all(answer, 5, 2, 1));
  // Slices that share an entry have the same version.
  auto pull = worker.pullRequest();
  pull.setSlices({0, 1, 2, 4});
  auto now = pull.send().wait(bench.scope);
  REQUIRE(now.getValues().size() == 3);
  CHECK(all(now, 16, 1, 0));
  CHECK(all(now, 80, 2, 1));
  CHECK(now.getValues()[1].getVersion() == 1);
  CHECK(all(now, 16, 1, 2));

  CHECK(contains(bench.refusal(gradients(1, 1, 33)), "slice's size"));
  CHECK(contains(bench.refusal(gradients(0, 0, 118)), "slice's size"));
  // One slice of the call is out of turn, so no slice changes.
  CHECK(contains(bench.refusal(gradients(1, 0, 48)), "not its next"));
  CHECK(all(gradients(1, 1, 80).wait(bench.scope), 80, 3));
}

TEST_CASE("ShardServer: a call that is wrong in one slice changes no slice") {
  Bench bench(makeKeys({1000, 10, 7}), "dist_async", 1);
  auto link = Link::connect(bench.server);
  auto worker = bench.hello(link.service, 0, 1).wait(bench.scope).getSession();
  auto initializeAll = [&](uint64_t lastSize) {
    auto request = worker.initializeRequest();
    auto values = request.initValues(3);
    Bench::set(values[0], 0, Bench::filled(1000, 1));
    Bench::set(values[1], 1, Bench::filled(10, 1));
    Bench::set(values[2], 2, Bench::filled(lastSize, 1));
    return request.send();
  };
  CHECK(contains(bench.refusal(initializeAll(8)), "slice's size"));
  // No slice was initialized, so all of them still can be.
  initializeAll(7).wait(bench.scope);

  auto refusalOf = [&](uint64_t step, SliceId last, uint64_t lastSize) {
    auto request = worker.pushPullRequest();
    request.setStep(step);
    auto gradients = request.initGradients(3);
    Bench::set(gradients[0], 0, Bench::filled(1000, 1));
    Bench::set(gradients[1], 1, Bench::filled(10, 1));
    Bench::set(gradients[2], last, Bench::filled(lastSize, 1));
    return bench.refusal(request.send());
  };
  CHECK(contains(refusalOf(0, 2, 8), "slice's size"));
  CHECK(contains(refusalOf(0, 3, 7), "no such slice"));
  CHECK(contains(refusalOf(0, 1, 10), "must ascend"));
  CHECK(contains(refusalOf(0, 0, 1000), "must ascend"));
  bench.push(worker, 2, 0, 1).wait(bench.scope);
  CHECK(contains(refusalOf(1, 2, 7), "not its next"));
  auto pull = worker.pullRequest();
  pull.setSlices({1, 0});
  CHECK(contains(bench.refusal(pull.send()), "must ascend"));

  pull = worker.pullRequest();
  pull.setSlices({0, 1, 2});
  auto now = pull.send().wait(bench.scope);
  for (SliceId id: {0, 1}) CHECK(now.getValues()[id].getVersion() == 0);
  CHECK(now.getValues()[2].getVersion() == 1);
  // This is the first push of slices 0 and 1, and repeats that of slice 2.
  auto answer = bench.pushAll(worker, 0, {0, 1, 2}, 1).wait(bench.scope);
  CHECK(all(answer, 1000, 2, 0));
  CHECK(all(answer, 10, 2, 1));
  CHECK(all(answer, 7, 2, 2));
}

}  // namespace
}  // namespace rpc
