#include "nn/cpu/cpu.h"

#include <doctest/doctest.h>
#include <kj/exception.h>
#include <kj/thread.h>
#include <string.h>

#include "nn/cpu/testing/test_network.h"
#include "nn/softmax.h"

namespace nn {
namespace {

TEST_CASE("cpu: a perceptron agrees with the reference") {
  Net net({1, 5, 5});
  checkWithThreads(
      net.finish(net.dense(net.relu(net.dense(net.tanh(net.dense(0, 20)), 13, false)), 10)));
}

TEST_CASE("cpu: convolutions of all kinds agree with the reference") {
  struct Case {
    uint inputs, filters, side, kernel, stride, pad;
  };
  // Blocks that are full and not, Winograd and direct convolutions, the first layer and later ones,
  // images one column wide.
  for (auto& c: {Case{3, 16, 8, 3, 1, 1}, Case{1, 20, 12, 5, 1, 0}, Case{5, 7, 9, 3, 2, 1},
           Case{32, 48, 7, 3, 1, 1}, Case{16, 16, 14, 3, 1, 0}, Case{20, 50, 6, 5, 1, 2},
           Case{16, 32, 8, 1, 2, 0}, Case{24, 10, 5, 1, 1, 0}, Case{16, 16, 3, 3, 1, 1},
           Case{16, 16, 4, 2, 2, 0}, Case{2, 16, 1, 1, 1, 0}, Case{3, 33, 15, 7, 2, 3}}) {
    CAPTURE(c.inputs);
    CAPTURE(c.filters);
    CAPTURE(c.kernel);
    Net first({c.inputs, c.side, c.side});
    checkWithThreads(
        first.finish(first.dense(first.conv(0, c.filters, c.kernel, c.stride, c.pad), 4)));
    // With a 1×1 convolution before it, which keeps the shape, so that it has a gradient to pass
    // on.
    Net second({3, c.side, c.side});
    auto x = second.conv(second.tanh(second.conv(0, c.inputs, 1, 1, 0)), c.filters, c.kernel,
        c.stride, c.pad, false);
    checkWithThreads(second.finish(second.dense(x, 4)));
  }
}

TEST_CASE("cpu: pools agree with the reference, also with windows that hang over the edge") {
  for (auto function: {Pool::MAX, Pool::AVERAGE}) {
    for (auto rounding: {Pool::FLOOR, Pool::CEIL}) {
      for (auto& window: {Pool{function, 3, 2, 0, rounding}, Pool{function, 2, 2, 1, rounding},
               Pool{function, 3, 1, 1, rounding}, Pool{function, 8, 1, 0, rounding}}) {
        Net net({3, 8, 8});
        auto x = net.add(Pool(window), net.conv(0, 20, 3, 1, 1));
        checkWithThreads(net.finish(net.dense(net.relu(x), 4)));
      }
    }
  }
}

TEST_CASE("cpu: a pool before the first weight has no gradient to pass on") {
  Net net({3, 8, 8});
  checkWithThreads(net.finish(net.dense(net.maxPool(0, 2, 2), 4)));
}

TEST_CASE(
    "cpu: batch norms agree with the reference, after convolutions, dense layers and inputs") {
  Net net({3, 6, 6});
  auto x = net.norm(0);
  x = net.relu(net.norm(net.conv(x, 20, 3, 1, 1)));
  x = net.tanh(net.norm(net.conv(x, 16, 3, 2, 1, false)));
  x = net.relu(net.norm(net.dense(x, 12)));
  x = net.dense(net.norm(net.norm(x)), 5);
  // Statistics of only 8 images amplify rounding errors.
  checkWithThreads(net.finish(x), 2e-4);
}

TEST_CASE("cpu: batch norms in a row after a convolution with a bias agree with the reference") {
  for (double rate: {0.0, 0.5}) {
    CAPTURE(rate);
    Net net({3, 6, 6});
    auto x = net.norm(net.conv(0, 20, 3, 1, 1));
    if (rate > 0) x = net.dropout(x, rate);
    checkWithThreads(net.finish(net.dense(net.relu(net.norm(x)), 5)), 2e-4);
  }
}

TEST_CASE("cpu: a batch norm with a fixed gamma keeps it at 1") {
  Net net({3, 6, 6});
  auto x = net.add(BatchNorm{1e-3f, 0.9f, true}, net.conv(0, 16, 3, 1, 1));
  Graph graph = net.finish(net.dense(net.relu(x), 5));
  Data data(graph, 8);
  for (auto& key: graph.keys) {
    if (key.role != Key::GAMMA) continue;
    for (auto& x: data.parameters.slice(key.offset, key.offset + key.size)) x = 1;
  }
  Loaded ours(CPU, graph, data, 1), theirs(REFERENCE, graph, data, 1);
  CHECK(ours.step().lossSum == doctest::Approx(theirs.step().lossSum).epsilon(1e-5));
  CHECK(distance(ours.program->gradients(), theirs.program->gradients()) < 1e-4);
}

TEST_CASE("cpu: concats agree with the reference, whether or not inputs fill whole blocks") {
  for (uint left: {16u, 32u, 8u, 5u, 20u}) {
    for (uint right: {16u, 3u}) {
      CAPTURE(left);
      CAPTURE(right);
      Net net({3, 6, 6});
      auto x = net.factory(0, 16, 3, 1, 1);
      auto a = net.factory(x, left, 1, 1, 0);
      auto b = net.relu(net.conv(x, right, 3, 1, 1));
      auto c = net.maxPool(x, 3, 1, 1);
      x = net.add(Concat{}, {a, b, c});
      x = net.add(Concat{}, {x, net.conv(x, 16, 1, 1, 0)});
      checkWithThreads(net.finish(net.dense(net.averagePool(net.norm(x), 6, 1), 5)), 2e-4);
    }
  }
}

TEST_CASE("cpu: sums, and tensors with several readers, agree with the reference") {
  Net net({3, 8, 8});
  auto x = net.factory(0, 16, 3, 1, 1);
  // A residual block, one with a projection and a stride, and a sum that adds a tensor twice.
  auto y = net.norm(net.conv(net.factory(x, 16, 3, 1, 1), 16, 3, 1, 1));
  x = net.relu(net.add(Add{}, {y, x}));
  y = net.norm(net.conv(net.factory(x, 24, 3, 2, 1), 24, 3, 1, 1));
  x = net.relu(net.add(Add{}, {y, net.norm(net.conv(x, 24, 1, 2, 0))}));
  x = net.add(Add{}, {x, x, net.tanh(x), net.conv(x, 24, 3, 1, 1), net.conv(x, 24, 3, 1, 1)});
  checkWithThreads(net.finish(net.dense(net.averagePool(x, 4, 1), 5)), 2e-4);
}

TEST_CASE("cpu: a block that begins with a batch norm agrees with the reference") {
  Net net({3, 8, 8});
  auto x = net.conv(0, 16, 3, 1, 1);
  for (uint i = 0; i < 2; ++i) {
    auto y = net.relu(net.norm(x));
    y = net.conv(net.factory(y, 20, 3, 1, 1), 16, 3, 1, 1);
    x = net.add(Add{}, {x, y});
  }
  checkWithThreads(net.finish(net.dense(net.relu(net.norm(x)), 5)), 2e-4);
}

TEST_CASE("cpu: parameters that the loss does not depend on get no gradient") {
  Net net({3, 6, 6});
  auto x = net.conv(0, 8, 3, 1, 1);
  net.norm(net.conv(x, 8, 3, 1, 1));
  checkWithThreads(net.finish(net.dense(x, 5)));
}

TEST_CASE("cpu: an inception network agrees with the reference") {
  checkWithThreads(smallInception(), 1e-3);
}

TEST_CASE("cpu: a lenet agrees with the reference") {
  Net net({1, 28, 28});
  auto x = net.maxPool(net.tanh(net.conv(0, 20, 5, 1, 0)), 2, 2);
  x = net.maxPool(net.tanh(net.conv(x, 50, 5, 1, 0)), 2, 2);
  checkWithThreads(net.finish(net.dense(net.tanh(net.dense(x, 50)), 10)));
}

TEST_CASE("cpu: rows with label -1 do not count, and have no gradient") {
  Net net({3, 4, 4});
  Graph graph = net.finish(net.dense(net.relu(net.conv(0, 8, 3, 1, 1)), 5));
  Data all(graph, 6), part(graph, 4);
  memcpy(part.parameters.begin(), all.parameters.begin(), 4 * graph.parameters);
  memcpy(part.pixels.begin(), all.pixels.begin(), 4 * part.pixels.size());
  for (uint n = 0; n < 4; ++n) part.labels[n] = all.labels[n];
  all.labels[4] = all.labels[5] = -1;
  Loaded six(CPU, graph, all, 1), four(CPU, graph, part, 1);
  auto result = six.step();
  CHECK(result.images == 4);
  CHECK(result.lossSum == doctest::Approx(four.step().lossSum));
  CHECK(distance(six.program->gradients(), four.program->gradients()) < 1e-5);
}

TEST_CASE("cpu: judge() computes the bits of the program's result from its logits and labels") {
  Net net({1, 5, 5});
  Graph graph = net.finish(net.dense(net.tanh(net.dense(0, 20)), 10));
  Data data(graph, 50);
  data.labels[49] = -1;
  Loaded cpu(CPU, graph, data, 2);
  auto result = cpu.forward(Phase::VALIDATE);
  auto judged = judge(cpu.program->logits(), data.labels);
  CHECK(judged.lossSum == result.lossSum);
  CHECK(judged.correct == result.correct);
  CHECK(judged.images == 49);
  CHECK(result.images == 49);
}

TEST_CASE("cpu: a step gives the same bits every time, for each number of threads") {
  Graph graph = smallInception();
  Data data(graph, 10);
  for (uint threads: {1u, 2u, 3u}) {
    CAPTURE(threads);
    Loaded first(CPU, graph, data, threads), second(CPU, graph, data, threads);
    first.step();
    second.step();
    // Leftovers of a step in memory must not change the next one.
    auto before = kj::heapArray<float>(first.program->gradients());
    memcpy(second.program->statistics().begin(), data.statistics.begin(), 4 * graph.statisticsSize);
    second.forward(Phase::VALIDATE);
    second.step();
    auto after = second.program->gradients();
    CHECK(memcmp(before.begin(), after.begin(), 4 * before.size()) == 0);
  }
}

TEST_CASE(
    "cpu: values that validation leaves in memory do not change the next step, not even infinite "
    "ones") {
  // Channels that do not fill their blocks. The sizes decide which memory both plans use.
  for (uint images: {1u, 2u, 4u}) {
    for (uint kernel: {1u, 5u}) {
      for (uint channels: {100u, 200u}) {
        CAPTURE(images);
        CAPTURE(kernel);
        CAPTURE(channels);
        Net net({3, 4, 4});
        auto x = net.factory(0, 40, 3, 1, 1);
        for (uint i = 0; i < 3; ++i) {
          auto y = net.factory(x, channels, kernel, 1, kernel / 2);
          y = net.norm(net.conv(y, 40, kernel, 1, kernel / 2));
          x = net.relu(net.add(Add{}, {x, y}));
        }
        Graph graph = net.finish(net.dense(net.averagePool(net.relu(net.norm(x)), 4, 1), 5));
        Data data(graph, images);
        Loaded clean(CPU, graph, data, 1), other(CPU, graph, data, 1);
        clean.step();
        for (auto& x: other.program->parameters()) x = INFINITY;
        other.forward(Phase::VALIDATE);
        memcpy(other.program->parameters().begin(), data.parameters.begin(), 4 * graph.parameters);
        other.step();
        auto ours = clean.program->gradients(), theirs = other.program->gradients();
        CHECK(memcmp(ours.begin(), theirs.begin(), 4 * ours.size()) == 0);
      }
    }
  }
}

TEST_CASE("cpu: two programs that run at the same time give the bits of one") {
  Graph graph = smallInception();
  Data data(graph, 10);
  Loaded alone(CPU, graph, data, 2);
  alone.step();
  auto expected = alone.program->gradients();
  bool isSame[2] = {false, false};
  {
    auto work = [&](bool& same) {
      Loaded loaded(CPU, graph, data, 2);
      loaded.step();
      auto gradients = loaded.program->gradients();
      same = memcmp(gradients.begin(), expected.begin(), 4 * expected.size()) == 0;
    };
    kj::Thread first([&]() { work(isSame[0]); });
    kj::Thread second([&]() { work(isSame[1]); });
  }
  CHECK(isSame[0]);
  CHECK(isSame[1]);
}

TEST_CASE("cpu: a program with more threads than images agrees with the reference") {
  checkAgainstReference(smallInception(), 3, 5, 1e-3);
}

TEST_CASE("cpu: parameters of a segment may change once its backward is done") {
  Graph graph = smallInception();
  REQUIRE(graph.segments.size() > 3);
  Data data(graph, 8);
  Loaded clean(CPU, graph, data, 2), overwritten(CPU, graph, data, 2);
  clean.step();
  overwritten.forward(Phase::TRAIN);
  for (uint s = graph.segments.size(); s-- > 0;) {
    overwritten.program->backward(s);
    auto range = graph.segments[s].parameters;
    for (auto& x: overwritten.program->parameters().slice(range.begin, range.end)) x = NAN;
    for (auto& x: overwritten.program->gradients().slice(0, range.begin)) x = NAN;
  }
  auto ours = clean.program->gradients(), theirs = overwritten.program->gradients();
  CHECK(memcmp(ours.begin(), theirs.begin(), 4 * ours.size()) == 0);
}

TEST_CASE("cpu: gradients of a segment stay until its next backward") {
  Graph graph = smallInception();
  Data data(graph, 8);
  Loaded loaded(CPU, graph, data, 1);
  loaded.step();
  auto before = kj::heapArray<float>(loaded.program->gradients());
  loaded.forward(Phase::TRAIN);
  for (uint s = graph.segments.size(); s-- > 0;) {
    auto end = graph.segments[s].parameters.end;
    auto now = loaded.program->gradients();
    CHECK(memcmp(before.begin(), now.begin(), 4 * end) == 0);
    loaded.program->backward(s);
  }
}

TEST_CASE("cpu: a bias right before a batch norm has no gradient and moves the moving mean") {
  Net net({3, 6, 6});
  Graph graph = net.finish(net.dense(net.norm(net.conv(0, 16, 3, 1, 1)), 5));
  Data data(graph, 8);
  Loaded ours(CPU, graph, data, 1), theirs(REFERENCE, graph, data, 1);
  ours.step();
  theirs.step();
  auto& bias = graph.keys[1];
  REQUIRE(bias.role == Key::BIAS);
  for (auto x: ours.program->gradients().slice(bias.offset, bias.offset + bias.size)) {
    CHECK(x == 0);
  }
  CHECK(distance(ours.program->statistics(), theirs.program->statistics()) < 1e-6);
}

Graph graphWithDropout() {
  Net net({3, 6, 6});
  auto x = net.dropout(net.tanh(net.conv(net.dropout(0, 0.1), 10, 3, 1, 1)), 0.5);
  return net.finish(net.dense(net.dropout(net.relu(net.dense(x, 50)), 0.3), 10));
}

TEST_CASE("cpu: a row's draw decides what dropout drops, wherever the row is in the batch") {
  constexpr uint IMAGES = 9;
  Graph graph = graphWithDropout();
  Data data(graph, IMAGES), turned(graph, IMAGES), redrawn(graph, IMAGES);
  size_t pixels = graph.inputShape().size();
  for (uint n = 0; n < IMAGES; ++n) {
    uint to = IMAGES - 1 - n;
    memcpy(&turned.pixels[to * pixels], &data.pixels[n * pixels], pixels * sizeof(float));
    turned.labels[to] = data.labels[n];
    turned.draws[to] = data.draws[n];
    redrawn.draws[n] += 1;
  }
  Loaded one(CPU, graph, data, 1), many(CPU, graph, turned, 4), other(CPU, graph, redrawn, 1);
  one.forward(Phase::TRAIN);
  many.forward(Phase::TRAIN);
  other.forward(Phase::TRAIN);
  auto row = [](Loaded& loaded, uint n) {
    return loaded.program->logits().slice(n * 10, n * 10 + 10);
  };
  for (uint n = 0; n < IMAGES; ++n) {
    CHECK(distance(row(many, IMAGES - 1 - n), row(one, n)) < 1e-6);
    CHECK(distance(row(other, n), row(one, n)) > 1e-2);
  }
  one.forward(Phase::VALIDATE);
  other.forward(Phase::VALIDATE);
  CHECK(distance(other.program->logits(), one.program->logits()) == 0);
}

TEST_CASE("cpu: training with dropout needs a draw for each row, and validation needs none") {
  Graph graph = graphWithDropout();
  Data data(graph, 4);
  for (auto backend: {&CPU, &REFERENCE}) {
    Loaded loaded(*backend, graph, data, 1);
    loaded.program->setBatch(data.pixels, data.labels, nullptr);
    loaded.forward(Phase::VALIDATE);
    CHECK(kj::runCatchingExceptions([&]() { loaded.forward(Phase::TRAIN); }) != nullptr);
  }
}

TEST_CASE("cpu: a program that only validates computes the same in less memory") {
  Graph graph = smallInception();
  Data data(graph, 4);
  Loaded whole(CPU, graph, data, 2);
  auto program = CPU.lower(graph, {.batchSize = 4, .threads = 2, .validatesOnly = true});
  memcpy(program->parameters().begin(), data.parameters.begin(), 4 * graph.parameters);
  memcpy(program->statistics().begin(), data.statistics.begin(), 4 * graph.statisticsSize);
  program->setBatch(data.pixels, data.labels, nullptr);
  whole.forward(Phase::VALIDATE);
  for (uint s = 0; s < graph.segments.size(); ++s) program->forward(Phase::VALIDATE, s);
  CHECK(distance(program->logits(), whole.program->logits()) == 0);
  CHECK(program->memory_bytes() < whole.program->memory_bytes());
  CHECK(kj::runCatchingExceptions([&]() { program->backward(0); }) != nullptr);
  CHECK(kj::runCatchingExceptions([&]() { program->forward(Phase::TRAIN, 0); }) != nullptr);
}

TEST_CASE("cpu: before the first forward, result() and backward() throw") {
  Net net({3, 4, 4});
  Graph graph = net.finish(net.dense(0, 5));
  Data data(graph, 4);
  Loaded loaded(CPU, graph, data, 1);
  CHECK(kj::runCatchingExceptions([&]() { loaded.program->result(); }) != nullptr);
  CHECK(kj::runCatchingExceptions([&]() { loaded.program->logits(); }) != nullptr);
  CHECK(kj::runCatchingExceptions([&]() { loaded.program->backward(0); }) != nullptr);
}

TEST_CASE("cpu: a batch of the wrong size or with a label beyond the classes is refused") {
  Net net({3, 4, 4});
  Graph graph = net.finish(net.dense(0, 5));
  Data data(graph, 4);
  Loaded loaded(CPU, graph, data, 1);
  CHECK(kj::runCatchingExceptions([&]() {
    loaded.program->setBatch(data.pixels, data.labels.slice(0, 3), data.draws);
  }) != nullptr);
  data.labels[2] = 5;
  CHECK(kj::runCatchingExceptions(
            [&]() { loaded.program->setBatch(data.pixels, data.labels, data.draws); }) != nullptr);
}

}  // namespace
}  // namespace nn
