#include "rpc/wire/payload.h"

#include <doctest/doctest.h>
#include <kj/debug.h>
#include <math.h>

#include <cstring>

#include "rpc/codec/top_k_compression.h"
#include "rpc/codec/two_bit_compression.h"
#include "rpc/testing/test_model.h"

namespace rpc::codec {
namespace {

// Returns multiples of 2^-12, whose sums are exact.
float coarse(uint64_t a, uint64_t b, uint64_t c) {
  return roundf(noise(a, b, c) * 4096) / 4096;
}

struct Pushing {
  Placement placement;
  Codec codec;
  PushEncoder encoder;
  kj::Array<float> gradient;
  kj::Array<float> sent;  // in all

  Pushing(Codec codec, std::initializer_list<uint64_t> sizes, uint workers = 1)
      : placement(placeBalanced(makeKeys(sizes), 4096, 1)),
        codec(codec),
        encoder(codec, placement, workers),
        gradient(kj::heapArray<float>(placement.parameters())),
        sent(kj::heapArray<float>(placement.parameters())) {
    for (auto& value: sent) value = 0;
  }

  // Encodes and checks all slices of `gradient`, and adds the result to `sent`.
  void push(uint64_t step) {
    for (SliceId id = 0; id < placement.slices.size(); id++) {
      auto& slice = placement.slices[id];
      auto payload = encoder.encode(id, step, slice.of(gradient.asPtr().asConst()));
      codec.pushes().check(payload, slice.size);
      codec.pushes().add(payload, slice.of(sent.asPtr()));
    }
  }
};

TEST_CASE("PushEncoder: two-bit codes are MXNet's") {
  Pushing one(codecOf("compression = { kind = '2bit', threshold = 0.5 }"), {18});
  // Code 11 from the threshold up, 10 from minus the threshold down, else 00; four values per byte.
  float gradient[] = {
      0.5f, -0.5f, 0.25f, 2, 0, -3, -0.49f, 0.51f, 1, 0, 0, 0, 0, 0, 0, -1, 1, 0.3f};
  memcpy(one.gradient.begin(), gradient, sizeof(gradient));
  auto first = one.encoder.encode(0, 0, one.gradient);
  kj::byte expected[] = {0b11100011, 0b00100011, 0b11000000, 0b00000010, 0b11000000, 0, 0, 0};
  CHECK(first == kj::arrayPtr(expected, 8));
  auto kept = one.encoder.unsent();
  CHECK(kept[0] == 0);
  CHECK(kept[2] == 0.25f);
  CHECK(kept[3] == 1.5f);
  CHECK(kept[5] == -2.5f);
  CHECK(kept[17] == 0.3f);
  // The kept rest is added to the next gradient: 0.25 + 0.25 reaches the threshold.
  auto second = one.encoder.encode(0, 1, one.gradient);
  kj::byte next[] = {0b11101111, 0b00101011, 0b11000000, 0b00000010, 0b11110000, 0, 0, 0};
  CHECK(second == kj::arrayPtr(next, 8));
}

TEST_CASE("PushEncoder: the sum of all gradients is exactly the sent values plus the kept ones") {
  for (auto keys: {
           "compression = { kind = '2bit', threshold = 0.5 }",
           "compression = { kind = '2bit', threshold = 0.0625 }",
           "compression = { kind = 'topk', sparsity = 0.99 }",
           "compression = { kind = 'topk', sparsity = 0.9, warmup_steps = 7 }",
           "compression = { kind = 'topk', sparsity = 0.95 }\nwire = 'float16'",
           "compression = { kind = 'topk', sparsity = 0.95 }\nwire = 'bfloat16'",
       }) {
    CAPTURE(keys);
    Pushing all(codecOf(keys), {1000, 3, 5000});
    auto sum = kj::heapArray<double>(all.gradient.size());
    for (auto& value: sum) value = 0;
    for (uint64_t step = 0; step < 30; step++) {
      for (auto i: kj::indices(sum)) sum[i] += all.gradient[i] = coarse(step, i, 3);
      all.push(step);
    }
    for (auto i: kj::indices(sum)) {
      REQUIRE(double(all.sent[i]) + double(all.encoder.unsent()[i]) == sum[i]);
    }
  }
}

TEST_CASE("PushEncoder: 1bit sends the signs of the residuals, and two means per group") {
  Pushing one(codecOf("compression = { kind = '1bit' }"), {4});
  auto push = [&](uint64_t step, std::initializer_list<float> gradient) {
    memcpy(one.gradient.begin(), gradient.begin(), 4 * sizeof(float));
    return one.encoder.encode(0, step, one.gradient);
  };
  auto isPayload = [](Bytes bytes, float below, float above, uint32_t bits) {
    kj::byte expected[12];
    memcpy(expected, &below, 4);
    memcpy(expected + 4, &above, 4);
    memcpy(expected + 8, &bits, 4);
    return bytes == kj::arrayPtr(expected, 12);
  };
  auto keeps = [&](std::initializer_list<float> values) {
    return one.encoder.unsent() == kj::arrayPtr(values.begin(), 4);
  };
  CHECK(isPayload(push(0, {1, -2, 3, -4}), -3, 2, 0b0101));
  CHECK(keeps({-1, 1, 1, -1}));
  // The kept rest is added to the next gradient, and 0 counts as not below 0.
  CHECK(isPayload(push(1, {0, 4, -1, -2}), -2, 2.5f, 0b0110));
  CHECK(keeps({1, 2.5f, -2.5f, -1}));
  CHECK(isPayload(push(2, {0, 0, 3, 2}), 0, 1.25f, 0b1111));
}

TEST_CASE("PushEncoder: 1bit loses no more than the rounding of its means") {
  Pushing all(codecOf("compression = { kind = '1bit' }"), {1000, 3, 5000});
  auto sum = kj::heapArray<double>(all.gradient.size());
  for (auto& value: sum) value = 0;
  for (uint64_t step = 0; step < 30; step++) {
    for (auto i: kj::indices(sum)) sum[i] += all.gradient[i] = coarse(step, i, 3);
    all.push(step);
  }
  for (auto i: kj::indices(sum)) {
    double difference = double(all.sent[i]) + double(all.encoder.unsent()[i]) - sum[i];
    REQUIRE(fabs(difference) < 30 * 1e-6);
  }
}

TEST_CASE("PushEncoder: topk follows the formulas of deep gradient compression") {
  constexpr uint64_t SIZE = 2000;
  constexpr uint WORKERS = 4;
  auto codec = codecOf(
      "compression = { kind = 'topk', sparsity = 0.98, momentum = 0.9, clip_norm = 20, "
      "warmup_steps = 4 }");
  Pushing one(codec, {SIZE}, WORKERS);
  REQUIRE(one.placement.slices.size() == 2);
  for (auto& slice: one.placement.slices) {
    auto u = kj::heapArray<double>(slice.size), v = kj::heapArray<double>(slice.size);
    for (auto i: kj::indices(u)) u[i] = v[i] = 0;
    for (uint64_t step = 0; step < 10; step++) {
      double squares = 0;
      for (auto& g: slice.of(one.gradient.asPtr())) {
        g = noise(step, &g - one.gradient.begin(), 1);
        squares += double(g) * g;
      }
      double clip = kj::min(1.0, 20 / sqrt(WORKERS) / sqrt(squares));
      auto payload = one.encoder.encode(
          slice.offset / slice.size, step, slice.of(one.gradient.asPtr().asConst()));
      auto sent = kj::heapArray<float>(slice.size);
      codec.pushes().decode(payload, sent);
      double least = INFINITY, most = 0;
      size_t count = 0;
      for (auto i: kj::indices(u)) {
        u[i] = 0.9f * u[i] + clip * slice.of(one.gradient.asPtr())[i];
        v[i] += u[i];
        if (sent[i] == 0) {
          most = kj::max(most, fabs(v[i]));
        } else {
          count++;
          least = kj::min(least, fabs(v[i]));
          REQUIRE(fabs(sent[i] - v[i]) < 1e-5);
          u[i] = v[i] = 0;
        }
      }
      // Two steps send a quarter, two send a 16th, and the others 2 %.
      CHECK(count == (step < 2 ? slice.size / 4 : step < 4 ? (slice.size + 8) / 16 : 20));
      CHECK(least > most - 1e-5);
    }
  }
}

TEST_CASE("PushEncoder: a repeated step has the same bytes, and a step out of turn is refused") {
  for (auto keys: {"wire = 'float16'", "compression = { kind = '2bit' }",
           "compression = { kind = '1bit' }", "compression = { kind = 'topk', sparsity = 0.9 }"}) {
    Pushing one(codecOf(keys), {100});
    for (auto i: kj::indices(one.gradient)) one.gradient[i] = noise(1, i, 0);
    auto first = kj::heapArray(one.encoder.encode(0, 0, one.gradient));
    CHECK(one.encoder.encode(0, 0, one.gradient) == first);
    CHECK_THROWS((void)one.encoder.encode(0, 2, one.gradient));
    CHECK_NOTHROW((void)one.encoder.encode(0, 1, one.gradient));
    CHECK_THROWS((void)one.encoder.encode(0, 0, one.gradient));
  }
}

TEST_CASE("PushEncoder: without compression, float32 is sent without copying") {
  Pushing one({}, {100});
  CHECK(one.encoder.encode(0, 5, one.gradient).begin() == one.gradient.asBytes().begin());
  CHECK(one.encoder.unsent().size() == 0);
}

TEST_CASE("PushEncoder: a NaN in a gradient ends training instead of hiding in a residual") {
  for (auto keys: {"compression = { kind = '2bit' }", "compression = { kind = '1bit' }"}) {
    Pushing one(codecOf(keys), {100});
    for (auto& value: one.gradient) value = 0;
    one.gradient[98] = NAN;
    CHECK_THROWS((void)one.encoder.encode(0, 0, one.gradient));
  }
}

TEST_CASE("Codec: sums of up to 4096 thresholds are exact") {
  float t = usedThreshold(0.3);
  CHECK(fabs(t - 0.3) < 0.3 / 4096);
  CHECK(usedThreshold(0.5) == 0.5f);
  float sum = 0;
  for (int i = 1; i <= 4096; i++) {
    sum += t;
    REQUIRE(double(sum) == i * double(t));
  }
}

TEST_CASE("Codec: a warm-up to 99.9 % over four epochs follows the paper") {
  CHECK(sparsityAt(0, 400, 0.999) == 0.75);
  CHECK(sparsityAt(99, 400, 0.999) == 0.75);
  CHECK(sparsityAt(100, 400, 0.999) == 0.9375);
  CHECK(sparsityAt(200, 400, 0.999) == 0.984375);
  CHECK(sparsityAt(399, 400, 0.999) == 0.99609375);
  CHECK(sparsityAt(400, 400, 0.999) == 0.999);
  CHECK(sparsityAt(0, 400, 0.5) == 0.5);
}

}  // namespace
}  // namespace rpc::codec
