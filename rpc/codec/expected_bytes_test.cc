#include "rpc/codec/expected_bytes.h"

#include <doctest/doctest.h>

#include "configs/language/random.h"

namespace rpc::codec {
namespace {

// Multiples of a half up to ±2, or zeros.
kj::Array<float> sparse(uint64_t size, double nonZero) {
  configs::Random random(7, configs::Purpose::INITIAL_VALUES);
  auto values = kj::heapArray<float>(size);
  for (auto& value: values) {
    float some = 0.5f * (1 + random.below(4)) * (random.below(2) == 0 ? 1 : -1);
    value = random.uniform() < nonZero ? some : 0;
  }
  return values;
}

TEST_CASE("expected_bytes: within 3 % of what an encoder makes, whatever the share") {
  constexpr uint64_t SIZE = 100'003;
  const Encoding ENCODINGS[] = {{.kind = Encoding::FLOAT32}, {.kind = Encoding::FLOAT16},
      {.kind = Encoding::BFLOAT16}, {.kind = Encoding::SPARSE},
      {.kind = Encoding::SPARSE, .values = Encoding::FLOAT16},
      {.kind = Encoding::MULTIPLES, .unit = 0.5f, .most = 4}};
  for (double nonZero: {0.0001, 0.001, 0.01, 0.04, 0.3, 0.9, 1.0}) {
    auto values = sparse(SIZE, nonZero);
    uint64_t count = 0;
    for (float value: values) count += value != 0;
    for (auto& encoding: ENCODINGS) {
      Encoder encoder;
      Buffer buffer;
      CAPTURE(encoding.name());
      CAPTURE(nonZero);
      CHECK(expected_bytes(encoding, SIZE, double(count) / SIZE) ==
            doctest::Approx(encoder.encode(encoding, values, buffer).size()).epsilon(0.03));
    }
  }
}

TEST_CASE("expected_bytes: two bits per value, in whole words") {
  Encoding twoBit{.kind = Encoding::TWO_BIT, .unit = 0.5f};
  CHECK(expected_bytes(twoBit, 1600, 1) == 400);
  CHECK(expected_bytes(twoBit, 1601, 1) == 404);
}

}  // namespace
}  // namespace rpc::codec
