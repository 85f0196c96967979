#include "rpc/modes/delay_compensation.h"

#include <kj/debug.h>
#include <math.h>

namespace rpc {

namespace {

constexpr float MEAN_SQUARE_DECAY = 0.95f;
constexpr float EPSILON = 1e-7f;

}  // namespace

uint DelayCompensation::stateArrays(const Slice& slice) const {
  return updater->stateArrays(slice) + (config.adaptive ? 1 : 0);
}

void DelayCompensation::update(const Slice& slice, const Round& round,
    kj::ArrayPtr<const float> current, kj::ArrayPtr<float> next, kj::ArrayPtr<float> state) {
  KJ_REQUIRE(
      round.seen.size() == current.size(), "a correction lacks the values that the worker saw");
  size_t size = current.size();
  if (corrected.size() < size) corrected = kj::heapArray<float>(size);
  size_t own = state.size() - (config.adaptive ? size : 0);
  float* meanSquare = state.begin() + own;
  float perImage = 1 / imagesPerPush;
  float lambda = float(config.lambda);
  for (size_t i = 0; i < size; i++) {
    float sum = round.gradientSum[i];
    float g = perImage * sum;
    float strength = lambda;
    if (config.adaptive) {
      meanSquare[i] = MEAN_SQUARE_DECAY * meanSquare[i] + (1 - MEAN_SQUARE_DECAY) * g * g;
      strength = lambda / sqrtf(meanSquare[i] + EPSILON);
    }
    corrected[i] = sum + strength * g * sum * (current[i] - round.seen[i]);
  }
  Round rest = round;
  rest.gradientSum = corrected.slice(0, size);
  updater->update(slice, rest, current, next, state.slice(0, own));
}

}  // namespace rpc
