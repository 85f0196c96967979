#include "nn/dropout.h"

#include "configs/language/random.h"

namespace nn {

DropoutMask dropoutMask(double rate, uint64_t draw, unsigned node) {
  uint64_t keys = configs::Random(draw, configs::Purpose::DROPOUT, node).next();
  return {.first = uint32_t(keys),
      .second = uint32_t(keys >> 32),
      .threshold = uint32_t(rate * 0x1p24 + 0.5),
      .scale = float(1 / (1 - rate))};
}

}  // namespace nn
