// Tests the times in a profile, and that a profile changes no bit of a program's results.
#include <doctest/doctest.h>
#include <kj/time.h>

#include "nn/cpu/testing/test_network.h"

namespace nn {
namespace {

// A network with each kind of task: parallel branches, a sum, a pool and a head.
Graph network() {
  Net net({3, 14, 14});
  auto x = net.factory(0, 20, 3, 1, 1);
  x = net.add(Concat{}, {net.factory(x, 16, 1, 1, 0), net.factory(x, 16, 3, 1, 1)});
  x = net.relu(net.add(Add{}, {net.norm(net.conv(x, 32, 3, 1, 1)), x}));
  return net.finish(net.dense(net.dropout(net.maxPool(x, 2, 2), 0.5), 10));
}

TEST_CASE("cpu: times of the nodes add up to at most the time of the steps") {
  auto graph = network();
  Data data(graph, 8);
  auto& clock = kj::systemPreciseMonotonicClock();
  for (uint threads: {1, 2}) {
    Profile profile;
    ProgramOptions options{.batchSize = 8, .threads = threads, .profile = profile};
    auto program = CPU.lower(graph, options);
    program->setBatch(data.pixels, data.labels, data.draws);
    auto begin = clock.now();
    for (uint s = 0; s < graph.segments.size(); ++s) program->forward(Phase::TRAIN, s);
    for (uint s = graph.segments.size(); s-- > 0;) program->backward(s);
    double step_s = (clock.now() - begin) / kj::NANOSECONDS * 1e-9;

    double sum_s = 0;
    for (NodeId n: kj::indices(graph.nodes)) {
      auto& node = graph.nodes[n];
      CAPTURE(node.name.cStr());
      double forward_s = profile.seconds(n, Profile::FORWARD);
      double backward_s = profile.seconds(n, Profile::BACKWARD);
      sum_s += forward_s + backward_s;
      if (node.keys.size() == 0) continue;
      CHECK(forward_s > 0);
      CHECK(backward_s > 0);
    }
    CHECK(sum_s > 0);
    CHECK(sum_s <= step_s);
    profile.clear();
    CHECK(profile.seconds(1, Profile::FORWARD) == 0);
  }
}

TEST_CASE("cpu: a program with a profile computes the same bits as one without") {
  auto graph = network();
  Data data(graph, 8);
  Loaded plain(CPU, graph, data, 2), timed(CPU, graph, data, 2);
  Profile profile;
  timed.program = CPU.lower(graph, {.batchSize = 8, .threads = 2, .profile = profile});
  memcpy(timed.program->parameters().begin(), data.parameters.begin(), 4 * graph.parameters);
  memcpy(timed.program->statistics().begin(), data.statistics.begin(), 4 * graph.statisticsSize);
  timed.program->setBatch(data.pixels, data.labels, data.draws);
  CHECK(plain.step().lossSum == timed.step().lossSum);
  CHECK(plain.program->gradients() == timed.program->gradients());
  CHECK(plain.program->statistics() == timed.program->statistics());
}

}  // namespace
}  // namespace nn
