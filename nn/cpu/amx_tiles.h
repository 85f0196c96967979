// nn/cpu/amx_tiles.h: the eight tile registers of AMX: those of the processor, and an emulation
// with AVX-512.
#pragma once

#include <immintrin.h>
#include <stdint.h>
#include <string.h>

#include "nn/cpu/amx.h"

namespace nn::cpu {
// Files that include this header are compiled for different instruction sets. The anonymous
// namespace keeps the linker from using one file's code in another file.
namespace {

// A register number as an argument.
template <int number>
struct Number {
  static constexpr int value = number;
};

// In memory, a tile takes 1 KB without gaps. Register numbers are template arguments, because they
// are part of the instructions.
//
// Not written with the intrinsics of g++ 12: its _tile_loadconfig says that it reads 8 of 64 bytes,
// and its _tile_loadd does not say that it reads memory.
struct AmxTiles {
  static void begin() {
    struct {
      uint8_t palette = 1, startRow = 0, reserved[14] = {};
      uint16_t rowBytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
      uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
    } config;
    static_assert(sizeof(config) == 64);
    asm volatile("ldtilecfg %0" ::"m"(config));
  }
  static void end() { asm volatile("tilerelease" ::); }

  template <int tile>
  static void zero() {
    asm volatile("tilezero %%tmm%c0" ::"i"(tile));
  }
  template <int tile>
  static void load(const void* p) {
    asm volatile("tileloadd (%0,%1,1), %%tmm%c2" ::"r"(p), "r"(64l), "i"(tile) : "memory");
  }
  // Does the same for values that are not read again soon: they do not take room in the first-level
  // cache.
  template <int tile>
  static void stream(const void* p) {
    asm volatile("tileloaddt1 (%0,%1,1), %%tmm%c2" ::"r"(p), "r"(64l), "i"(tile) : "memory");
  }
  template <int tile>
  static void store(float* p) {
    asm volatile("tilestored %%tmm%c2, (%0,%1,1)" ::"r"(p), "r"(64l), "i"(tile) : "memory");
  }
  // c += a · b
  template <int c, int a, int b>
  static void multiply() {
    asm volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(c), "i"(a), "i"(b));
  }
};

// The same bits without AMX. As measured on 4,000 random tiles, TDPBF16PS adds the products of even
// and of odd inputs in a chain of fused operations each, from 0, and adds the sum of both chains to
// C. It treats denormal numbers as 0, and does not produce any (Intel's manual, volume 2,
// TDPBF16PS).
struct EmulatedTiles {
  static void begin() {}
  static void end() {}

  template <int tile>
  static void zero() {
    memset(registers[tile], 0, sizeof(registers[tile]));
  }
  template <int tile>
  static void load(const void* p) {
    memcpy(registers[tile], p, sizeof(registers[tile]));
  }
  template <int tile>
  static void stream(const void* p) {
    load<tile>(p);
  }
  template <int tile>
  static void store(float* p) {
    memcpy(p, registers[tile], sizeof(registers[tile]));
  }
  template <int c, int a, int b>
  static void multiply() {
    multiply(reinterpret_cast<float*>(registers[c]), registers[a], registers[b]);
  }

private:
  static inline thread_local uint32_t registers[8][AMX_SUMS] __attribute__((aligned(64)));

  static __m512 evenOf(__m512i pairs) { return _mm512_castsi512_ps(_mm512_slli_epi32(pairs, 16)); }
  static __m512 oddOf(__m512i pairs) {
    return _mm512_castsi512_ps(_mm512_and_si512(pairs, _mm512_set1_epi32(int(0xffff0000))));
  }

  static void multiply(float* c, const uint32_t* a, const uint32_t* b) {
    constexpr unsigned FLUSH_TO_ZERO = 0x8000, DENORMALS_ARE_ZERO = 0x40, ROUNDING = 0x6000;
    unsigned before = _mm_getcsr();
    _mm_setcsr((before & ~ROUNDING) | FLUSH_TO_ZERO | DENORMALS_ARE_ZERO);
    constexpr size_t ROWS = 4;  // at a time, so that the chains do not wait for themselves
    for (size_t m = 0; m < AMX_SIDE; m += ROWS) {
      __m512 even[ROWS] = {}, odd[ROWS] = {};
      for (size_t k = 0; k < AMX_SIDE; k++) {
        __m512i right = _mm512_load_si512(b + k * AMX_SIDE);
        __m512 rightEven = evenOf(right), rightOdd = oddOf(right);
        for (size_t i = 0; i < ROWS; i++) {
          __m512i left = _mm512_set1_epi32(int(a[(m + i) * AMX_SIDE + k]));
          even[i] = _mm512_fmadd_ps(evenOf(left), rightEven, even[i]);
          odd[i] = _mm512_fmadd_ps(oddOf(left), rightOdd, odd[i]);
        }
      }
      for (size_t i = 0; i < ROWS; i++) {
        float* row = c + (m + i) * AMX_SIDE;
        _mm512_store_ps(row, _mm512_add_ps(_mm512_load_ps(row), _mm512_add_ps(even[i], odd[i])));
      }
    }
    _mm_setcsr(before);
  }
};

}  // namespace
}  // namespace nn::cpu
