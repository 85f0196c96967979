// nn/cuda/element.h: how values are stored in the memory of a device. Compilers for devices read
// this file too: no KJ.
#pragma once

#include "nn/element.h"
#include "nn/loops/host_device.h"

namespace nn::cuda {

// The number of channels in one load of 16 bytes. Tensors are padded to multiples of it.
constexpr unsigned packOf(Element element) {
  return unsigned(16 / bytesOf(element));
}

HOST_DEVICE uint32_t bitsOf(float value) {
  uint32_t bits;
  __builtin_memcpy(&bits, &value, sizeof(bits));
  return bits;
}
HOST_DEVICE float floatOf(uint32_t bits) {
  float value;
  __builtin_memcpy(&value, &bits, sizeof(value));
  return value;
}

// load() converts a stored value to float, exactly. store() rounds a float to nearest, ties to
// even. Values that are too large for a half become infinite. Devices have instructions for this,
// which differ only in the bits of a NaN.
HOST_DEVICE float load(float value) {
  return value;
}
HOST_DEVICE float load(Bfloat16 value) {
  return floatOf(uint32_t(value.bits) << 16);
}
// A product turns the exponent of a half into that of a float. This is right for subnormal halves
// too.
HOST_DEVICE float load(Float16 value) {
#ifdef __CUDA_ARCH__
  float result;
  asm("cvt.f32.f16 %0, %1;" : "=f"(result) : "h"(value.bits));
  return result;
#endif
  uint32_t magnitude = uint32_t(value.bits & 0x7fff) << 13;
  uint32_t sign = uint32_t(value.bits & 0x8000) << 16;
  if (magnitude >= 0x0f800000) return floatOf(sign | 0x70000000 | magnitude);  // inf, NaN
  return floatOf(sign | bitsOf(floatOf(magnitude) * 0x1p112f));
}

HOST_DEVICE void store(float& to, float value) {
  to = value;
}
HOST_DEVICE void store(Bfloat16& to, float value) {
#ifdef __CUDA_ARCH__
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(to.bits) : "f"(value));
  return;
#endif
  uint32_t bits = bitsOf(value);
  bool isNan = (bits & 0x7fffffff) > 0x7f800000;
  to.bits = uint16_t(isNan ? bits >> 16 | 0x40 : (bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}
HOST_DEVICE void store(Float16& to, float value) {
#ifdef __CUDA_ARCH__
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(to.bits) : "f"(value));
  return;
#endif
  uint32_t bits = bitsOf(value);
  uint32_t magnitude = bits & 0x7fffffff;
  uint32_t half;
  if (magnitude > 0x7f800000) {
    half = 0x7e00;
  } else if (magnitude >= 0x477ff000) {  // 65520, the smallest float that rounds to 2^16
    half = 0x7c00;
  } else if (magnitude < 0x38800000) {  // 2^-14. A sum with 1/2 rounds as subnormal halves do
    half = bitsOf(floatOf(magnitude) + 0.5f) - 0x3f000000;
  } else {
    half = (magnitude + 0x0fff + (magnitude >> 13 & 1) - 0x38000000) >> 13;
  }
  to.bits = uint16_t((bits >> 16 & 0x8000) | half);
}

}  // namespace nn::cuda
