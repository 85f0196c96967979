#include "runner/checkpoints/array_figures.h"

#include <kj/debug.h>
#include <string.h>

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "runner/checkpoints/float_values.h"
#include "runner/text/numbers.h"

namespace runner {

namespace {

// The values may be unaligned.
template <typename T>
T valueAt(kj::ArrayPtr<const kj::byte> values, size_t index) {
  T value;
  memcpy(&value, values.begin() + index * sizeof(T), sizeof(T));
  return value;
}

// T is how values are stored, and Number what they are calculated with.
template <typename T, typename Number = T>
ArrayFigures figures(kj::ArrayPtr<const kj::byte> values) {
  ArrayFigures found;
  found.values = values.size() / sizeof(T);
  Number min = 0, max = 0;
  double sum = 0;
  uint64_t finite = 0;
  for (size_t i = 0; i < found.values; i++) {
    Number value = valueAt<T>(values, i);
    if (!std::isfinite(double(value))) continue;
    if (finite == 0 || value < min) min = value;
    if (finite == 0 || value > max) max = value;
    sum += double(value);
    finite++;
  }
  found.notFinite = found.values - finite;
  if (finite > 0) {
    found.min = kj::str(min);
    found.max = kj::str(max);
    found.mean = sixDigits(sum / double(finite));
  }
  return found;
}

template <typename Number>
double distance(Number x, Number y) {
  auto [less, more] = std::minmax(x, y);
  if constexpr (std::is_integral_v<Number>) {
    // The distance of two signed numbers may need one bit more than the numbers themselves.
    return double(uint64_t(more) - uint64_t(less));
  } else {
    return double(more - less);
  }
}

template <typename T, typename Number = T>
ArrayDifference difference(kj::ArrayPtr<const kj::byte> a, kj::ArrayPtr<const kj::byte> b) {
  ArrayDifference found;
  for (size_t i = 0; i < a.size() / sizeof(T); i++) {
    size_t at = i * sizeof(T);
    if (memcmp(a.begin() + at, b.begin() + at, sizeof(T)) == 0) continue;
    if (found.values++ == 0) found.first = i;
    Number x = valueAt<T>(a, i), y = valueAt<T>(b, i);
    if (!std::isfinite(double(x)) || !std::isfinite(double(y))) {
      found.notFinite++;
    } else {
      found.largest = kj::max(found.largest, distance(x, y));
    }
  }
  return found;
}

}  // namespace

ArrayFigures figuresOf(const FoundTensor& array) {
  if (array.type == "F32") return figures<float>(array.values);
  if (array.type == "F64") return figures<double>(array.values);
  if (array.type == "F16") return figures<Float16, float>(array.values);
  if (array.type == "BF16") return figures<Bfloat16, float>(array.values);
  if (array.type == "I64") return figures<int64_t>(array.values);
  return figures<uint64_t>(array.values);
}

ArrayDifference differenceOf(const FoundTensor& a, const FoundTensor& b) {
  KJ_REQUIRE(a.type == b.type && a.values.size() == b.values.size(), a.name, b.name);
  if (a.type == "F32") return difference<float>(a.values, b.values);
  if (a.type == "F64") return difference<double>(a.values, b.values);
  if (a.type == "F16") return difference<Float16, float>(a.values, b.values);
  if (a.type == "BF16") return difference<Bfloat16, float>(a.values, b.values);
  if (a.type == "I64") return difference<int64_t>(a.values, b.values);
  return difference<uint64_t>(a.values, b.values);
}

}  // namespace runner
