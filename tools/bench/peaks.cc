#include "tools/bench/peaks.h"

#include <immintrin.h>
#include <kj/array.h>
#include <kj/thread.h>
#include <kj/vector.h>
#include <stdint.h>
#include <string.h>

#include "nn/cpu/instruction_set.h"
#include "tools/bench/figures.h"

namespace tools {
namespace {

using kj::byte;
using kj::uint;

constexpr uint ROUNDS = 10;
constexpr double ROUND_S = 0.02;
constexpr size_t COPIED_BYTES = 32 << 20;
// How many multiply-adds are in flight. Latency times throughput is 8 on present processors.
constexpr uint CHAINS = 12;
constexpr uint CALL_STEPS = 10000;

// Defines a function that makes CALL_STEPS steps of CHAINS multiply-adds, and returns a sum so that
// the compiler keeps all of them. `noipa` keeps calls whose result nobody reads.
#define MULTIPLY_ADDS(name, instructions, Vector, zero, step)                    \
  __attribute__((noipa, target(instructions))) float name() {                    \
    Vector sums[CHAINS];                                                         \
    for (auto& sum: sums) sum = zero;                                            \
    for (uint i = 0; i < CALL_STEPS; ++i) {                                      \
      _Pragma("GCC unroll 12") for (uint c = 0; c < CHAINS; ++c) sums[c] = step; \
    }                                                                            \
    for (uint c = 1; c < CHAINS; ++c) sums[0] += sums[c];                        \
    return sums[0][0];                                                           \
  }

MULTIPLY_ADDS(multiplyAddAvx2, "avx2,fma", __m256, _mm256_set1_ps(0.5f),
    _mm256_fmadd_ps(sums[c], _mm256_set1_ps(0.5f), _mm256_set1_ps(0.5f)))
MULTIPLY_ADDS(multiplyAddAvx512, "avx512f", __m512, _mm512_set1_ps(0.5f),
    _mm512_fmadd_ps(sums[c], _mm512_set1_ps(0.5f), _mm512_set1_ps(0.5f)))
// A factor is 1 in each half of a word.
MULTIPLY_ADDS(multiplyAddBf16, "avx512f,avx512bf16", __m512, _mm512_set1_ps(0),
    _mm512_dpbf16_ps(
        sums[c], (__m512bh)_mm512_set1_epi32(0x3f803f80), (__m512bh)_mm512_set1_epi32(0x3f803f80)))

// A tile register is 16 × 16 floats, or 16 × 32 bfloat16s. Four sums are in flight.
constexpr uint TILE_PRODUCTS = 4;
constexpr double TILE_FLOPS = 2 * 16 * 16 * 32;

void multiplyTiles() {
  struct {
    uint8_t palette = 1, startRow = 0, reserved[14] = {};
    uint16_t rowBytes[16] = {64, 64, 64, 64, 64, 64};
    uint8_t rows[16] = {16, 16, 16, 16, 16, 16};
  } config;
  asm volatile("ldtilecfg %0" ::"m"(config));
  asm volatile(
      "tilezero %%tmm0\ntilezero %%tmm1\ntilezero %%tmm2\ntilezero %%tmm3\n"
      "tilezero %%tmm4\ntilezero %%tmm5" ::);
  for (uint i = 0; i < CALL_STEPS; ++i) {
    asm volatile(
        "tdpbf16ps %%tmm5, %%tmm4, %%tmm0\ntdpbf16ps %%tmm5, %%tmm4, %%tmm1\n"
        "tdpbf16ps %%tmm5, %%tmm4, %%tmm2\ntdpbf16ps %%tmm5, %%tmm4, %%tmm3" ::);
  }
  asm volatile("tilerelease" ::);
}

// Calls `work` again and again on `threads` threads at the same time. Returns the calls of all
// threads per second of processor time, so that other programs do not lower a peak. Each thread
// gets its number.
template <typename Work>
double callsPerSecond(uint threads, Work&& work) {
  double best = 0;
  for (uint round = 0; round < ROUNDS; ++round) {
    auto rates = kj::heapArray<double>(threads);
    {
      kj::Vector<kj::Own<kj::Thread>> running;
      for (uint t = 0; t < threads; ++t) {
        running.add(kj::heap<kj::Thread>([&rates, &work, t]() {
          double begin = threadSeconds();
          uint calls = 0;
          for (; calls == 0 || threadSeconds() - begin < ROUND_S; ++calls) work(t);
          rates[t] = calls / (threadSeconds() - begin);
        }));
      }
    }
    double sum = 0;
    for (double rate: rates) sum += rate;
    best = kj::max(best, sum);
  }
  return best;
}

double flops(uint threads, float (*multiplyAdd)(), uint lanes) {
  auto sums = kj::heapArray<float>(threads);
  double calls = callsPerSecond(threads, [&](uint t) { sums[t] = multiplyAdd(); });
  return calls * CALL_STEPS * CHAINS * lanes * 2;
}

double tileFlops(uint threads) {
  double calls = callsPerSecond(threads, [](uint) { multiplyTiles(); });
  return calls * CALL_STEPS * TILE_PRODUCTS * TILE_FLOPS;
}

double copyBytes(uint threads) {
  kj::Vector<kj::Array<byte>> from, to;
  for (uint t = 0; t < threads; ++t) {
    from.add(kj::heapArray<byte>(COPIED_BYTES));
    to.add(kj::heapArray<byte>(COPIED_BYTES));
    memset(from[t].begin(), 1, COPIED_BYTES);
    memset(to[t].begin(), 0, COPIED_BYTES);
  }
  double calls = callsPerSecond(
      threads, [&](uint t) { memcpy(to[t].begin(), from[t].begin(), COPIED_BYTES); });
  return calls * 2 * COPIED_BYTES;
}

}  // namespace

Peaks measurePeaks(uint threads, kj::StringPtr instructionSet) {
  bool hasAvx512 = instructionSet != nn::AVX2;
  bool usesAmx = instructionSet == nn::AMX && nn::hasAmx();
  bool hasBf16 = hasAvx512 && __builtin_cpu_supports("avx512bf16");
  return {.fp32_flops = hasAvx512 ? flops(threads, multiplyAddAvx512, 16)
                                  : flops(threads, multiplyAddAvx2, 8),
      .bf16_flops = hasBf16 ? flops(threads, multiplyAddBf16, 32) : 0,
      .amx_flops = usesAmx ? tileFlops(threads) : 0,
      .copy_bytes = copyBytes(threads)};
}

}  // namespace tools
