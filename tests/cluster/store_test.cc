// The place and the transport of parameters never change a bit: whole runs of the program, fifty
// steps each, of two workers unless stated otherwise.
#include <doctest/doctest.h>
#include <kj/vector.h>

#include "tests/cluster/whole_runs.h"

namespace tests {
namespace {

constexpr auto STEPS = "train.steps=50"_kj;
constexpr auto SERVERS = {"cluster.servers=1"_kj, "cluster.servers=2"_kj, "cluster.servers=3"_kj};
constexpr auto TRANSPORTS = {
    "kvstore.transport=tcp"_kj, "kvstore.transport=unix"_kj, "kvstore.transport=shared_memory"_kj};
constexpr auto PLACEMENTS = {"kvstore.placement=balanced"_kj, "kvstore.placement=round_robin"_kj,
    "kvstore.placement=mxnet_hash"_kj};
constexpr auto NO_SERVERS = "cluster.servers=0"_kj, ALLREDUCE = "kvstore.mode=allreduce"_kj;

Trained trainFifty(kj::StringPtr file, Settings settings) {
  kj::Vector<kj::StringPtr> all;
  all.add(STEPS);
  all.addAll(settings);
  return train(file, all);
}

kj::String bitsAfterFifty(kj::StringPtr file, Settings settings = nullptr) {
  return trainFifty(file, settings).weightsSha256;
}

// Returns the transport by which the workers of a run reached its servers, from its events. Fails
// if they used several.
kj::String reachedBy(const Trained& run) {
  kj::String all;
  eachEvent(run, [&](runner::Event::Reader event) {
    if (!event.isTrained()) return;
    for (auto server: event.getTrained().getServers()) {
      if (all == nullptr) all = kj::str(server.getTransport());
      CHECK(all == kj::StringPtr(server.getTransport()));
    }
  });
  return all;
}

TEST_CASE("dist_sync: every transport has the same bits, with any number of servers") {
  for (auto file: {MLP, BATCH_NORM}) {
    auto bits = bitsAfterFifty(file);
    for (auto transport: TRANSPORTS) {
      for (auto servers: SERVERS) {
        CAPTURE(transport);
        CAPTURE(servers);
        auto run = trainFifty(file, {transport, servers});
        CHECK(run.weightsSha256 == bits);
        CHECK(kj::str("kvstore.transport=", reachedBy(run)) == transport);
      }
    }
    CHECK(bitsAfterFifty(file, {"train.seed=2"}) != bits);
  }
}

TEST_CASE("servers that share a process have the same bits as servers with their own processes") {
  auto bits = bitsAfterFifty(MLP);
  for (auto transport: TRANSPORTS) {
    CAPTURE(transport);
    auto run = trainFifty(MLP, {transport, "cluster.servers=3", "cluster.servers_per_process=2"});
    CHECK(run.weightsSha256 == bits);
    kj::Vector<uint> processes;  // of servers
    eachEvent(run, [&](runner::Event::Reader event) {
      if (!event.isJoined() || event.getRole() != runner::Role::SERVER) return;
      processes.resize(kj::max(processes.size(), event.getIndex() + 1));
      processes[event.getIndex()] = event.getJoined().getPid();
    });
    REQUIRE(processes.size() == 3);
    CHECK(processes[0] == processes[1]);
    CHECK(processes[0] != processes[2]);
  }
}

TEST_CASE("dist_sync: the size and the placement of slices do not change a bit") {
  // The second model has an array that mxnet_hash cuts: 784 × 1276 values.
  constexpr auto WIDE =
      "model.layers=[{ kind = \"dense\", units = 1276 }, { kind = \"relu\" }, { kind = \"dense\", "
      "units = 10 }]"_kj;
  for (auto model: {"train.loss=mean"_kj, WIDE}) {
    auto bits = bitsAfterFifty(TANH, {model});
    for (auto placement: PLACEMENTS) {
      for (auto servers: SERVERS) {
        CAPTURE(placement);
        CAPTURE(servers);
        CHECK(bitsAfterFifty(TANH, {model, placement, servers}) == bits);
      }
    }
    for (auto slice: {"kvstore.slice_bytes=4096"_kj, "kvstore.slice_bytes=16777216"_kj}) {
      for (auto transport: TRANSPORTS) {
        CAPTURE(slice);
        CAPTURE(transport);
        CHECK(bitsAfterFifty(TANH, {model, slice, transport}) == bits);
      }
    }
  }
}

TEST_CASE("modes that are equivalent to dist_sync have its bits over every transport") {
  auto bits = bitsAfterFifty(MLP), alone = bitsAfterFifty(MLP, {"cluster.workers=1"});
  for (auto transport: TRANSPORTS) {
    CAPTURE(transport);
    CHECK(bitsAfterFifty(MLP, {transport, "kvstore.mode=dist_ssp", "kvstore.staleness=0"}) == bits);
    CHECK(bitsAfterFifty(MLP, {transport, "kvstore.update=worker"}) == bits);
    CHECK(bitsAfterFifty(MLP, {transport, ALLREDUCE, NO_SERVERS}) == bits);
    CHECK(bitsAfterFifty(MLP, {transport, "cluster.workers=1"}) == alone);
  }
  CHECK(bitsAfterFifty(MLP, {"cluster.workers=1", "kvstore.mode=local", NO_SERVERS}) == alone);
  for (auto placement: PLACEMENTS) {
    CAPTURE(placement);
    CHECK(bitsAfterFifty(MLP, {placement, ALLREDUCE, NO_SERVERS}) == bits);
  }
}

TEST_CASE("local_sgd has the same bits over every transport") {
  constexpr auto LOCAL = "kvstore.mode=local_sgd"_kj;
  auto bits = bitsAfterFifty(MLP, {LOCAL});
  for (auto transport: TRANSPORTS) {
    CAPTURE(transport);
    CHECK(bitsAfterFifty(MLP, {LOCAL, transport, "cluster.servers=3"}) == bits);
  }
}

TEST_CASE("easgd with one worker has the same bits over every transport") {
  constexpr auto EASGD = "kvstore.mode=easgd"_kj;
  auto bits = bitsAfterFifty(MLP, {EASGD, "cluster.workers=1"});
  for (auto transport: TRANSPORTS) {
    CAPTURE(transport);
    CHECK(
        bitsAfterFifty(MLP, {EASGD, "cluster.workers=1", transport, "cluster.servers=3"}) == bits);
  }
}

TEST_CASE("encoded values travel in messages over every transport, and have the same bits") {
  for (auto encoding: {"kvstore.wire=float16"_kj, "kvstore.wire=bfloat16"_kj,
           "kvstore.compression={ kind = \"1bit\" }"_kj,
           "kvstore.compression={ kind = \"2bit\" }"_kj,
           "kvstore.compression={ kind = \"topk\" }"_kj}) {
    CAPTURE(encoding);
    auto tcp = trainFifty(MLP, {encoding, "kvstore.transport=tcp"});
    CHECK(reachedBy(tcp) == "tcp");
    for (auto transport: {"kvstore.transport=shared_memory"_kj, "kvstore.transport=auto"_kj}) {
      auto run = trainFifty(MLP, {encoding, transport});
      CHECK(run.weightsSha256 == tcp.weightsSha256);
      CHECK(reachedBy(run) == "unix");
    }
    CHECK(bitsAfterFifty(MLP) != tcp.weightsSha256);
  }
  CHECK(reachedBy(trainFifty(MLP, {"kvstore.transport=auto"})) == "shared_memory");
}

}  // namespace
}  // namespace tests
