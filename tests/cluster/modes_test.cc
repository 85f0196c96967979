// Modes that differ in where updates run and where shards are, compared with dist_sync: whole runs
// of the program on Fashion-MNIST, one epoch each.
#include <doctest/doctest.h>

#include "tests/cluster/whole_runs.h"

namespace tests {
namespace {

TEST_CASE("updates by the workers have the bits of updates by the servers") {
  constexpr auto HERE = "kvstore.update=worker"_kj;
  for (auto file: {MLP, BATCH_NORM}) {
    auto bits = bitsOf(file);
    CHECK(bitsOf(file, {HERE}) == bits);
    CHECK(bitsOf(file, {HERE, "cluster.servers=3", "cluster.launcher=inline"}) == bits);
  }
  // Sums of codes are exact, wherever they are added up.
  constexpr auto TWO_BIT = "kvstore.compression={ kind = \"2bit\" }"_kj;
  CHECK(bitsOf(MLP, {TWO_BIT, HERE}) == bitsOf(MLP, {TWO_BIT}));
  // Sums of means are sent as floats.
  constexpr auto ONE_BIT = "kvstore.compression={ kind = \"1bit\" }"_kj;
  CHECK(bitsOf(MLP, {ONE_BIT, HERE}) == bitsOf(MLP, {ONE_BIT}));
  // Whole keys, a lookahead, a schedule, and more than one rest.
  constexpr auto LARS = "train.optimizer={ kind = \"lars\", learning_rate = 5 }"_kj;
  constexpr auto LOOKAHEAD = "train.lookahead={ every = 5 }"_kj;
  constexpr auto SCHEDULE =
      "train.schedule={ kind = \"factor\", every_epochs = 1, factor = 0.5 }"_kj;
  constexpr auto EPOCHS = "train.epochs=2"_kj;
  CHECK(bitsOf(MLP, {LARS, LOOKAHEAD, SCHEDULE, EPOCHS, HERE}) ==
        bitsOf(MLP, {LARS, LOOKAHEAD, SCHEDULE, EPOCHS}));
}

TEST_CASE(
    "local_sgd: averaging after every step of plain SGD equals dist_sync except for rounding") {
  constexpr auto PLAIN = "train.optimizer={ kind = \"sgd\", learning_rate = 0.05 }"_kj;
  constexpr auto LOCAL = "kvstore.mode=local_sgd"_kj;
  constexpr auto EACH = "kvstore.local_steps=1"_kj;
  auto sync = train(TANH, {PLAIN}), each = train(TANH, {PLAIN, LOCAL, EACH});
  auto apart = distance(sync, each);
  MESSAGE("largest difference of a weight: ", apart);
  CHECK(apart <= 1e-5);
  CHECK(validationAccuracy(each) > 0.7);
  // Averaging after several steps trains other weights.
  CHECK(distance(sync, train(TANH, {PLAIN, LOCAL})) > 1e-3);
}

TEST_CASE(
    "local_sgd learns with every outer optimizer, and its bits do not depend on the servers") {
  constexpr auto LOCAL = "kvstore.mode=local_sgd"_kj;
  for (auto outer:
      {"kvstore.outer={ kind = \"average\" }"_kj, "kvstore.outer={ kind = \"block_momentum\" }"_kj,
          "kvstore.outer={ kind = \"nesterov\" }"_kj}) {
    CAPTURE(outer);
    auto run = train(MLP, {LOCAL, outer});
    CHECK(validationAccuracy(run) > 0.75);
    CHECK(bitsOf(MLP, {LOCAL, outer, "cluster.servers=3", "cluster.launcher=inline"}) ==
          run.weightsSha256);
    CHECK(bitsOf(MLP, {LOCAL, outer, "kvstore.local_steps=7"}) != run.weightsSha256);
  }
}

TEST_CASE("allreduce has the bits of dist_sync, with any number of workers") {
  constexpr auto ALL = "kvstore.mode=allreduce"_kj, NO_SERVERS = "cluster.servers=0"_kj;
  for (auto file: {MLP, BATCH_NORM}) {
    for (auto workers: {"cluster.workers=1"_kj, "cluster.workers=2"_kj, "cluster.workers=3"_kj}) {
      CAPTURE(workers);
      CHECK(bitsOf(file, {ALL, NO_SERVERS, workers}) == bitsOf(file, {workers}));
    }
  }
  auto bits = bitsOf(MLP);
  CHECK(bitsOf(MLP, {ALL, NO_SERVERS, "cluster.launcher=inline"}) == bits);
  CHECK(bitsOf(MLP, {ALL, NO_SERVERS, "kvstore.update=worker"}) == bits);
  CHECK(bitsOf(MLP, {ALL, NO_SERVERS, "kvstore.slice_bytes=4096", "train.epochs=2"}) ==
        bitsOf(MLP, {"train.epochs=2"}));
}

}  // namespace
}  // namespace tests
