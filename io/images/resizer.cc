// Built with -O3, so that the compiler makes vector code from the loops over values.
#include "io/images/resizer.h"

#include <immintrin.h>
#include <kj/debug.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "configs/language/each_instruction_set.h"

namespace io {

namespace {

// Explicit vectors, because the compiler does not vectorize these loops by itself.
using Floats = float __attribute__((vector_size(32)));
using Pixel = float __attribute__((vector_size(16)));
static_assert(sizeof(Floats) == 2 * sizeof(Pixel));
static_assert(sizeof(Pixel) == Resizer::VALUES * sizeof(float));
constexpr size_t FLOATS = sizeof(Floats) / sizeof(float);

template <typename Vector>
[[gnu::always_inline]] inline void load(Vector& to, const float* from) {
  memcpy(&to, from, sizeof(to));
}
template <typename Vector>
[[gnu::always_inline]] inline void store(float* to, const Vector& from) {
  memcpy(to, &from, sizeof(from));
}

// Values that blend() computes at once, in registers.
constexpr size_t BLOCK = 4 * FLOATS;

// Writes the weighted sum of `count` rows. `stride`, the distance between rows and the number of
// values, is a multiple of BLOCK. The first row is number `first` of `kept`, after which comes
// number 0.
void blendPlain(const kj::byte* rows, size_t stride, uint first, uint kept, const float* weights,
    uint count, float* __restrict__ out) {
  for (size_t begin = 0; begin < stride; begin += BLOCK) {
    float sums[BLOCK] = {};
    uint at = first;
    for (uint k = 0; k < count; ++k) {
      auto values = rows + at * stride + begin;
      for (size_t i = 0; i < BLOCK; ++i) sums[i] += weights[k] * values[i];
      at = at + 1 == kept ? 0 : at + 1;
    }
    memcpy(out + begin, sums, sizeof(sums));
  }
}

// The same with AVX2, and the same bits. The compiler makes vectors of the loop above too, but it
// keeps the sums in memory, which takes longer than to keep the rows as floats.
__attribute__((target("avx2"))) void blendAvx2(const kj::byte* rows, size_t stride, uint first,
    uint kept, const float* weights, uint count, float* __restrict__ out) {
  for (size_t begin = 0; begin < stride; begin += BLOCK) {
    __m256 a = _mm256_setzero_ps(), b = a, c = a, d = a;
    uint at = first;
    for (uint k = 0; k < count; ++k) {
      auto values = rows + at * stride + begin;
      auto add = [weight = _mm256_set1_ps(weights[k])](auto& sum, const kj::byte* bytes)
          __attribute__((always_inline, target("avx2"))) {
        auto eight = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(bytes));
        auto next = _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(eight));
        sum = _mm256_add_ps(sum, _mm256_mul_ps(weight, next));
      };
      add(a, values);
      add(b, values + FLOATS);
      add(c, values + 2 * FLOATS);
      add(d, values + 3 * FLOATS);
      at = at + 1 == kept ? 0 : at + 1;
    }
    _mm256_storeu_ps(out + begin, a);
    _mm256_storeu_ps(out + begin + FLOATS, b);
    _mm256_storeu_ps(out + begin + 2 * FLOATS, c);
    _mm256_storeu_ps(out + begin + 3 * FLOATS, d);
  }
}

// Chosen once, when the program starts.
const auto blend = __builtin_cpu_supports("avx2") ? &blendAvx2 : &blendPlain;

// Writes planes of `size` new pixels, each of which is made of 2 · PAIRS pixels. The even and the
// odd ones are added up apart, then together.
template <uint PAIRS>
[[gnu::always_inline]] inline void gatherPairs(const float* pixels, const Resizer::Taps* taps,
    const float* weights, uint pairs, uint size, float* __restrict__ out) {
  if (PAIRS > 0) pairs = PAIRS;
  auto sumOf = [&](uint x) __attribute__((always_inline))->Pixel {
    auto from = pixels + taps[x].first * Resizer::VALUES;
    auto weight = weights + size_t(x) * pairs * FLOATS;
    Floats both = {};
    for (uint k = 0; k < pairs; ++k) {
      Floats two, twoWeights;
      load(two, from + k * FLOATS);
      load(twoWeights, weight + k * FLOATS);
      both += two * twoWeights;
    }
    return __builtin_shufflevector(both, both, 0, 1, 2, 3) +
           __builtin_shufflevector(both, both, 4, 5, 6, 7);
  };
  uint x = 0;
  for (; x + 4 <= size; x += 4) {
    Pixel a = sumOf(x), b = sumOf(x + 1), c = sumOf(x + 2), d = sumOf(x + 3);
    Pixel ab01 = __builtin_shufflevector(a, b, 0, 4, 1, 5);
    Pixel ab23 = __builtin_shufflevector(a, b, 2, 6, 3, 7);
    Pixel cd01 = __builtin_shufflevector(c, d, 0, 4, 1, 5);
    Pixel cd23 = __builtin_shufflevector(c, d, 2, 6, 3, 7);
    Pixel planes[] = {__builtin_shufflevector(ab01, cd01, 0, 1, 4, 5),
        __builtin_shufflevector(ab01, cd01, 2, 3, 6, 7),
        __builtin_shufflevector(ab23, cd23, 0, 1, 4, 5),
        __builtin_shufflevector(ab23, cd23, 2, 3, 6, 7)};
    for (uint v = 0; v < Resizer::VALUES; ++v) store(out + v * size + x, planes[v]);
  }
  for (; x < size; ++x) {
    Pixel sum = sumOf(x);
    for (uint v = 0; v < Resizer::VALUES; ++v) out[v * size + x] = sum[v];
  }
}

EACH_INSTRUCTION_SET
void gather(const float* pixels, const Resizer::Taps* taps, const float* weights, uint pairs,
    uint size, float* __restrict__ out) {
  switch (pairs) {
    case 1:
      return gatherPairs<1>(pixels, taps, weights, pairs, size, out);
    case 2:
      return gatherPairs<2>(pixels, taps, weights, pairs, size, out);
    case 3:
      return gatherPairs<3>(pixels, taps, weights, pairs, size, out);
    default:
      return gatherPairs<0>(pixels, taps, weights, pairs, size, out);
  }
}

// The whole pixels that an extent covers, of an image of `pixels`.
struct Whole {
  int begin, end;
};
Whole wholeOf(Extent extent, uint pixels) {
  int begin = int(std::floor(extent.begin)), end = int(std::ceil(extent.begin + extent.size));
  return {std::max(begin, 0), std::min(end, int(pixels))};
}

}  // namespace

// As in Pillow (Resample.c, precompute_coeffs).
void Resizer::Side::set(uint pixels, Extent extent, uint newSize, uint copies) {
  KJ_REQUIRE(newSize > 0 && extent.size > 0);
  size = newSize;
  if (taps.size() < newSize) taps = kj::heapArray<Taps>(newSize);
  double scale = extent.size / newSize, support = std::max(scale, 1.0);
  auto whole = wholeOf(extent, pixels);
  auto centreOf = [&](uint i) { return extent.begin + (i + 0.5) * scale; };
  tapsMax = 0;
  for (uint i = 0; i < newSize; ++i) {
    int first = std::max(int(centreOf(i) - support + 0.5), whole.begin);
    int end = std::min(int(centreOf(i) + support + 0.5), whole.end);
    KJ_ASSERT(first < end, first, end);
    taps[i] = {uint(first), uint(end - first)};
    tapsMax = std::max(tapsMax, taps[i].count);
  }
  tapsMax += tapsMax % 2;
  size_t needed = size_t(newSize) * tapsMax * copies;
  if (weights.size() < needed) weights = kj::heapArray<float>(needed);
  auto next = weights.begin();
  for (uint i = 0; i < newSize; ++i) {
    double centre = centreOf(i), sum = 0;
    auto weightOf = [&](uint k) {
      double distance = std::abs(taps[i].first + k + 0.5 - centre) / support;
      return k < taps[i].count ? std::max(0.0, 1 - distance) : 0;
    };
    for (uint k = 0; k < taps[i].count; ++k) sum += weightOf(k);
    for (uint k = 0; k < tapsMax; ++k) {
      auto weight = static_cast<float>(weightOf(k) / sum);
      for (uint copy = 0; copy < copies; ++copy) *next++ = weight;
    }
  }
}

void Resizer::begin(
    uint height, uint width, Extent rows, Extent columns, uint newHeight, uint newWidth) {
  vertical.set(height, rows, newHeight, 1);
  horizontal.set(width, columns, newWidth, VALUES);
  this->width = width;
  added = 0;
  finished = 0;
  kept = vertical.tapsMax;
  // gather() reads pixels beyond the last one, which have a weight of 0.
  stride = (size_t(width + horizontal.tapsMax) * VALUES + BLOCK - 1) / BLOCK * BLOCK;
  if (this->rows.size() < kept * stride) {
    this->rows = kj::heapArray<kj::byte>(kept * stride);
    for (auto& value: this->rows) value = 0;
  }
  if (blended.size() < stride) blended = kj::heapArray<float>(stride);
  if (done.size() < newWidth * VALUES) done = kj::heapArray<float>(newWidth * VALUES);
}

void Resizer::add(kj::ArrayPtr<const kj::byte> row,
    kj::FunctionParam<void(uint y, kj::ArrayPtr<const float> planes)> take) {
  KJ_REQUIRE(row.size() == size_t(width) * VALUES, row.size(), width);
  memcpy(rows.begin() + added % kept * stride, row.begin(), row.size());
  ++added;
  while (finished < vertical.size) {
    auto& down = vertical.taps[finished];
    if (down.first + down.count > added) break;
    blend(rows.begin(), stride, down.first % kept, kept,
        &vertical.weights[size_t(finished) * vertical.tapsMax], down.count, blended.begin());
    gather(blended.begin(), horizontal.taps.begin(), horizontal.weights.begin(),
        horizontal.tapsMax / 2, horizontal.size, done.begin());
    take(finished++, done.slice(0, horizontal.size * VALUES));
  }
}

}  // namespace io
