#include "tools/bench/kv_model.h"

#include <kj/debug.h>

#include <cstring>

#include "configs/language/failure.h"
#include "nn/optimizer/update_values.h"

namespace tools {
namespace {

constexpr float RATE = 0.01f, MOMENTUM = 0.9f, DECAY = 1e-4f;

// Returns a number in [-1, 1) with few bits, so that sums of workers round, and products too.
float scattered(uint64_t a, uint64_t b, uint64_t c) {
  uint64_t mixed = (a * 0x9e3779b97f4a7c15 ^ (b + 1) * 0xc2b2ae3d27d4eb4f) + c * c * 0x165667b1;
  mixed ^= mixed >> 29;
  return float(int32_t(uint32_t((mixed * 0xff51afd7ed558ccd) >> 32))) * 0x1p-31f;
}

}  // namespace

float kvFirstValue(uint64_t index) {
  return scattered(index % KV_PERIOD, 0, 0);
}

float kvGradient(uint rank, uint64_t seed, uint64_t index) {
  return scattered(index % KV_PERIOD, seed + 1, rank + 1);
}

void KvUpdater::update(const rpc::Slice&, const rpc::Round& round,
    kj::ArrayPtr<const float> current, kj::ArrayPtr<float> next, kj::ArrayPtr<float> state) {
  if (!sgd) {
    memcpy(next.begin(), round.gradientSum.begin(), next.asBytes().size());
    return;
  }
  nn::updateValues({.kind = nn::ValueRule::SGD_RATE_INSIDE,
                       .states = 1,
                       .rescale = 1.0f / round.divisor,
                       .decay = DECAY,
                       .learningRate = RATE,
                       .momentum = MOMENTUM},
      {.size = next.size(),
          .gradient = round.gradientSum.begin(),
          .current = current.begin(),
          .next = next.begin(),
          .state = state.begin()});
}

KvReplay::KvReplay(const KvCase& kvCase)
    : kvCase(kvCase),
      values(kj::heapArray<float>(kj::min(KV_PERIOD, kvCase.floats()))),
      momenta(kj::heapArray<float>(values.size())) {
  for (auto i: kj::indices(values)) {
    values[i] = kvFirstValue(i);
    momenta[i] = 0;
  }
}

void KvReplay::advance(uint64_t seed, uint64_t rounds) {
  if (rounds == 0) return;
  float rescale = 1.0f / kvCase.workers;
  for (auto i: kj::indices(values)) {
    float sum = kvGradient(0, seed, i);
    for (uint rank = 1; rank < kvCase.workers; ++rank) sum = sum + kvGradient(rank, seed, i);
    float w = values[i], v = momenta[i];
    for (uint64_t round = 0; round < rounds && kvCase.sgd; ++round) {
      float g = rescale * sum + DECAY * w;
      v = MOMENTUM * v - RATE * g;
      w = w + v;
    }
    values[i] = kvCase.sgd ? w : sum;
    momenta[i] = v;
  }
}

void KvReplay::compare(kj::ArrayPtr<const float> parameters) const {
  for (size_t begin = 0; begin < parameters.size(); begin += values.size()) {
    auto part = parameters.slice(begin, kj::min(begin + values.size(), parameters.size()));
    if (memcmp(part.begin(), values.begin(), part.asBytes().size()) == 0) continue;
    for (auto i: kj::indices(part)) {
      if (part[i] == values[i]) continue;
      configs::fail("the store returned a wrong value: parameter ", begin + i, " is ", part[i],
          ", not ", values[i], ". No figures are printed, because they would be meaningless");
    }
  }
}

}  // namespace tools
