#include "runner/roles/weight_average.h"

#include <doctest/doctest.h>

namespace runner {
namespace {

nn::Graph graphOf(uint64_t parameters, uint64_t statistics) {
  nn::Graph graph;
  graph.parameters = parameters;
  graph.statisticsSize = statistics;
  return graph;
}

TEST_CASE("WeightAverage: begins with the values after step 1, and takes each step once") {
  auto graph = graphOf(1, 1);
  WeightAverage average(0.5, graph);
  auto take = [&](uint64_t step, float parameter, float statistic) {
    average.take(step, kj::arrayPtr(&parameter, 1), kj::arrayPtr(&statistic, 1));
  };
  take(0, 99, 99);  // initial values do not count
  take(1, 4, 8);
  CHECK(average.values()[0] == 4);
  CHECK(average.values()[1] == 8);
  take(1, 77, 77);
  CHECK(average.values()[0] == 4);
  // n = 1: (1 + 1) / (10 + 1) is less than 0.5.
  take(2, 15, 8);
  CHECK(average.values()[0] == doctest::Approx(4 * 2.0 / 11 + 15 * 9.0 / 11));
  CHECK(average.values()[1] == doctest::Approx(8));
}

TEST_CASE("WeightAverage: keeps `decay` of itself after many steps") {
  auto graph = graphOf(1, 0);
  WeightAverage average(0.5, graph);
  float value = 0;
  for (uint64_t step = 1; step <= 50; step++) {
    average.take(step, kj::arrayPtr(&value, 1), nullptr);
  }
  value = 8;
  average.take(51, kj::arrayPtr(&value, 1), nullptr);
  CHECK(average.values()[0] == 4);
}

}  // namespace
}  // namespace runner
