// Tests compression over real connections, from the workers' gradients to their parameters.
#include <doctest/doctest.h>
#include <kj/debug.h>
#include <kj/thread.h>

#include <cstring>

#include "rpc/store/remote_store.h"
#include "rpc/testing/test_model.h"
#include "rpc/testing/test_server.h"
#include "rpc/testing/test_threads.h"
#include "rpc/wire/payload.h"

namespace rpc {
namespace {

// Answers with the sum of the round.
class SumOnly final: public Updater {
public:
  uint stateArrays(const Slice&) const override { return 0; }
  void update(const Slice& slice, const Round& round, kj::ArrayPtr<const float>,
      kj::ArrayPtr<float> next, kj::ArrayPtr<float>) override {
    memcpy(next.begin(), round.gradientSum.begin(), slice.size * sizeof(float));
  }
};

constexpr kj::StringPtr CODECS[] = {
    "wire = 'float16'"_kj,
    "wire = 'bfloat16'"_kj,
    "compression = { kind = '2bit', threshold = 0.5 }"_kj,
    "compression = { kind = '2bit', threshold = 0.25 }\nwire = 'bfloat16'"_kj,
    "compression = { kind = '1bit' }"_kj,
    "compression = { kind = '1bit' }\nwire = 'float16'"_kj,
    "compression = { kind = 'topk', sparsity = 0.95, momentum = 0.5 }"_kj,
    "compression = { kind = 'topk', sparsity = 0.95 }\nwire = 'float16'"_kj,
};

// Makes gradients for which some codes are 0 and some are not.
void makeGradients(
    uint rank, uint64_t step, kj::ArrayPtr<const float> parameters, kj::ArrayPtr<float> gradients) {
  for (auto i: kj::indices(gradients)) {
    gradients[i] = 0.4f * noise(rank, i, step) + 0.01f * parameters[i];
  }
}

// Computes each worker's parameters after some steps of dist_sync, on one thread with formulas.
struct Model {
  const Placement& placement;
  Rounds rounds;
  MomentumUpdater optimizer;
  kj::Array<float> values, next, state, sum, answer, gradients;

  Model(const Placement& placement, const Rounds& rounds): placement(placement), rounds(rounds) {
    for (auto array: {&values, &next, &state, &sum, &answer, &gradients}) {
      *array = kj::heapArray<float>(placement.parameters());
      for (auto& value: *array) value = 0;
    }
    for (auto i: kj::indices(values)) values[i] = answer[i] = noise(99, i, 0);
  }

  void train(uint steps) {
    auto encoders = KJ_MAP(rank, kj::zeroTo(rounds.workers)) {
      return kj::heap<PushEncoder>(rounds.codec, placement, rounds.workers);
    };
    codec::Encoder encoder;
    codec::Buffer buffer;
    for (uint64_t step = 0; step < steps; step++) {
      for (auto rank: kj::indices(encoders)) {
        makeGradients(rank, step, answer, gradients);
        for (SliceId id = 0; id < placement.slices.size(); id++) {
          auto& slice = placement.slices[id];
          auto pushed = kj::heapArray<float>(slice.size);
          rounds.codec.pushes().decode(
              encoders[rank]->encode(id, step, slice.of(gradients.asPtr().asConst())), pushed);
          auto target = slice.of(sum.asPtr());
          for (auto i: kj::indices(pushed))
            target[i] = rank == 0 ? pushed[i] : target[i] + pushed[i];
        }
      }
      for (SliceId id = 0; id < placement.slices.size(); id++) {
        auto& slice = placement.slices[id];
        auto own = slice.of(next.asPtr());
        if (rounds.codec.answersSums) {
          memcpy(own.begin(), slice.of(sum.asPtr()).begin(), own.asBytes().size());
        } else {
          optimizer.update(slice, Round{step, slice.of(sum.asPtr())}, slice.of(values.asPtr()), own,
              slice.of(state.asPtr()));
        }
        rounds.answers().decode(
            encoder.encode(rounds.answers(), own, buffer), slice.of(answer.asPtr()));
      }
      auto former = kj::mv(values);
      values = kj::mv(next);
      next = kj::mv(former);
    }
  }
};

bool same(kj::ArrayPtr<const float> a, kj::ArrayPtr<const float> b) {
  return a.size() == b.size() && memcmp(a.begin(), b.begin(), a.asBytes().size()) == 0;
}

TEST_CASE(
    "RemoteStore: compressed training has the bits of its formulas, with any number of servers") {
  constexpr uint STEPS = 12, WORKERS = 3;
  auto keys = makeKeys({1000, 10, 5000, 7, 3000, 1, 20000});
  for (auto travels: CODECS) {
    for (bool sums: {false, true}) {
      auto rounds = roundsOf("dist_sync", WORKERS, travels);
      rounds.codec.answersSums = sums;
      CAPTURE(kj::str(rounds).cStr());
      for (uint servers: {1, 2}) {
        auto placement = placeBalanced(keys, 4096, servers);
        SumOnly sumOnly;
        MomentumUpdater optimizer;
        auto threads =
            startServers(placement, rounds, sums ? static_cast<Updater&>(sumOnly) : optimizer);
        auto workers = KJ_MAP(rank, kj::zeroTo(WORKERS)) {
          return kj::heap<Worker>(placement, rounds, rank, threads);
        };
        auto answered = kj::heapArray<kj::Array<float>>(WORKERS);
        {
          auto computing = KJ_MAP(rank, kj::zeroTo(WORKERS)) {
            return kj::heap<kj::Thread>([&, rank]() {
              auto& worker = *workers[rank];
              uint64_t size = placement.parameters();
              worker.store->initialize();
              for (uint64_t step = 0; step < STEPS; step++) {
                makeGradients(rank, step, worker.parameters, worker.gradients);
                worker.store->push(step, 0, size);
                worker.store->await(step + 1, 0, size);
              }
              answered[rank] = kj::heapArray(worker.parameters.asPtr());
              worker.store->rest();
              worker.store->refresh();
            });
          };
        }
        Model model(placement, rounds);
        model.train(STEPS);
        for (auto rank: kj::indices(workers)) {
          CHECK(same(answered[rank], model.answer));
          // The values that are validated are exact.
          CHECK(same(workers[rank]->parameters, model.values));
        }
        uint64_t pushed_bytes = 0, pulled_bytes = 0;
        for (auto& traffic: workers[0]->store->traffic()) {
          pushed_bytes += traffic.pushed_bytes;
          pulled_bytes += traffic.pulled_bytes;
        }
        uint64_t bytes = placement.parameters() * sizeof(float);
        CHECK(pushed_bytes < STEPS * bytes * 0.51);
        bool halves = rounds.codec.wire != codec::Number::FLOAT32;
        if (halves) CHECK(pulled_bytes < (STEPS * 0.51 + 2) * bytes);
      }
    }
  }
}

TEST_CASE("Codec: topk that sends all values has the bits of float32") {
  auto placement = placeBalanced(makeKeys({1000, 10, 5000}), 4096, 1);
  auto plain = roundsOf("dist_sync", 2);
  auto all = roundsOf("dist_sync", 2, "compression = { kind = 'topk', sparsity = 0 }");
  Model expected(placement, plain), model(placement, all);
  expected.train(5);
  model.train(5);
  CHECK(same(model.values, expected.values));
}

TEST_CASE("ShardServer: invalid two-bit codes are refused and do not count") {
  Bench bench(makeKeys({40}), "dist_async");
  bench.rounds.codec = codecOf("compression = { kind = '2bit', threshold = 0.5 }");
  bench.server = newShardServer(bench.placement, 0, bench.rounds, bench.updater).service;
  auto link = Link::connect(bench.server);
  auto worker = bench.open(link, 0, 1.0f);
  auto push = [&](kj::ArrayPtr<const uint32_t> words) {
    auto request = worker.pushPullRequest();
    request.initGradients(1)[0].setFloats(words.asBytes());
    return request.send();
  };
  uint32_t good[] = {0xffffffff, 0xffffffff, 0x0000ffff}, wrong[] = {0x10, 0, 0};
  CHECK(contains(bench.refusal(push(kj::arrayPtr(wrong, 3))), "no two-bit code 01"));
  CHECK(contains(bench.refusal(push(kj::arrayPtr(good, 2))), "slice's size"));
  CHECK(all(push(kj::arrayPtr(good, 3)).wait(bench.scope), 40, 1.5f));
}

TEST_CASE("ShardServer: a 1bit push with a mean that is not finite is refused and does not count") {
  Bench bench(makeKeys({40}), "dist_async");
  bench.rounds.codec = codecOf("compression = { kind = '1bit' }");
  bench.server = newShardServer(bench.placement, 0, bench.rounds, bench.updater).service;
  auto link = Link::connect(bench.server);
  auto worker = bench.open(link, 0, 1.0f);
  auto push = [&](float below, float above, uint32_t bits) {
    kj::byte payload[16] = {};
    memcpy(payload, &below, 4);
    memcpy(payload + 4, &above, 4);
    memset(payload + 8, 0xff, 4);
    memcpy(payload + 12, &bits, 4);
    auto request = worker.pushPullRequest();
    request.initGradients(1)[0].setFloats(kj::arrayPtr(payload, 16));
    return request.send();
  };
  CHECK(contains(bench.refusal(push(float(-kj::inf()), 0.5f, 0xff)), "not a finite number"));
  CHECK(contains(bench.refusal(push(0, 0.5f, 0x1ff)), "beyond the end of the slice"));
  CHECK(all(push(0, 0.5f, 0xff).wait(bench.scope), 40, 1.5f));
}

TEST_CASE("ShardServer: a worker with another compression is refused") {
  Bench bench(makeKeys({40}), "dist_sync");
  auto link = Link::connect(bench.server);
  bench.rounds.codec = codecOf("compression = { kind = '2bit', threshold = 0.5 }");
  auto text = bench.refusal(bench.hello(link.service, 0));
  CHECK(contains(text, "start all roles with the same file"));
  CHECK(contains(text, "dist_sync, 2bit of 0.5"));
}

}  // namespace
}  // namespace rpc
