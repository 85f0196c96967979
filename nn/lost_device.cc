#include "nn/lost_device.h"

#include <atomic>

namespace nn {

namespace {

std::atomic<bool> isLost = false;

}  // namespace

void noteLostDevice() {
  isLost = true;
}

bool hasLostDevice() {
  return isLost;
}

}  // namespace nn
