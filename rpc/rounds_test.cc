#include "rpc/rounds.h"

#include <doctest/doctest.h>

namespace rpc {
namespace {

TEST_CASE("Rounds: different ways to count have different texts") {
  Rounds all[] = {
      {.mode = "dist_sync", .counted = Rounds::ALL, .workers = 4, .aggregate = 4},
      {.mode = "dist_sync", .counted = Rounds::FIRST, .workers = 4, .aggregate = 3},
      {.mode = "dist_sync", .counted = Rounds::FIRST, .workers = 4, .aggregate = 2},
      {.mode = "dist_sync", .counted = Rounds::ANY, .workers = 4, .aggregate = 3},
      {.mode = "dist_async", .counted = Rounds::EACH, .workers = 4},
      {.mode = "dist_ssp", .counted = Rounds::EACH, .workers = 4, .staleness = 3},
      {.mode = "dist_ssp", .counted = Rounds::EACH, .workers = 4, .staleness = 4},
      {.mode = "dc_asgd", .counted = Rounds::EACH, .workers = 4, .keepsSeen = true},
  };
  for (auto& a: all) {
    for (auto& b: all) CHECK((kj::str(a) == kj::str(b)) == (&a == &b));
  }
}

TEST_CASE("Rounds: each mode has its number of pushes per update and its divisor") {
  Rounds all{.counted = Rounds::ALL, .workers = 4, .aggregate = 4};
  CHECK(all.pushesPerUpdate() == 4);
  CHECK(all.divisor(4) == 4);
  // While three workers make a round, the fourth one pushes, too.
  Rounds first{.counted = Rounds::FIRST, .workers = 4, .aggregate = 3};
  CHECK(first.pushesPerUpdate() == 4);
  CHECK(first.divisor(3) == 3);
  Rounds any{.counted = Rounds::ANY, .workers = 1, .aggregate = 2};
  CHECK(any.pushesPerUpdate() == 2);
  CHECK(any.divisor(2) == 2);
  Rounds each{.counted = Rounds::EACH, .workers = 4};
  CHECK(each.pushesPerUpdate() == 1);
  CHECK(each.divisor(1) == 1);
  // Each push has 1 / workers of the weight of a synchronous step.
  Rounds bounded{.counted = Rounds::EACH, .workers = 4, .staleness = 1};
  CHECK(bounded.pushesPerUpdate() == 1);
  CHECK(bounded.divisor(1) == 4);
  // Workers that could join change no weight.
  Rounds elastic = bounded;
  elastic.workers = 8;
  elastic.usual = 4;
  CHECK(elastic.divisor(1) == 4);
}

TEST_CASE("Rounds: a worker reports its rest in modes where others may wait for it") {
  CHECK(!Rounds{.counted = Rounds::ALL, .workers = 2}.needsRest());
  CHECK(Rounds{.counted = Rounds::FIRST, .workers = 2}.needsRest());
  CHECK(Rounds{.counted = Rounds::ANY, .workers = 2}.needsRest());
  CHECK(!Rounds{.counted = Rounds::ANY, .workers = 1}.needsRest());
  CHECK(!Rounds{.counted = Rounds::EACH, .workers = 2}.needsRest());
  CHECK(Rounds{.counted = Rounds::EACH, .workers = 2, .staleness = 0}.needsRest());
}

}  // namespace
}  // namespace rpc
