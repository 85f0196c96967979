#include "runner/checkpoints/array_figures.h"

#include <doctest/doctest.h>

#include <cmath>

#include "tests/text.h"

namespace runner {
namespace {

template <typename T>
FoundTensor arrayOf(kj::StringPtr type, kj::ArrayPtr<const T> values) {
  return {kj::str("x"), kj::str(type), kj::str(values.size()), values.asBytes()};
}

TEST_CASE("figuresOf: summarizes the finite values, and counts the others") {
  const float values[] = {0.1f, NAN, -3, INFINITY, 2, -INFINITY};
  auto figures = figuresOf(arrayOf<float>("F32", values));
  CHECK(figures.values == 6);
  CHECK(figures.notFinite == 3);
  CHECK(figures.min == "-3");
  CHECK(figures.max == "2");
  CHECK(figures.mean == "-0.3");
  const double one[] = {0.1};
  CHECK(figuresOf(arrayOf<double>("F64", one)).max == "0.1");
  const uint64_t large[] = {12345678901234567890u, 1};
  CHECK(figuresOf(arrayOf<uint64_t>("U64", large)).max == "12345678901234567890");
  CHECK(figuresOf(arrayOf<uint64_t>("U64", large)).min == "1");
  const int64_t counts[] = {-7, 3};
  CHECK(figuresOf(arrayOf<int64_t>("I64", counts)).min == "-7");
  const uint16_t halves[] = {0x3c00, 0x7c00, 0xc000};  // 1, infinity, -2
  CHECK(figuresOf(arrayOf<uint16_t>("F16", halves)).values == 3);
  CHECK(figuresOf(arrayOf<uint16_t>("F16", halves)).notFinite == 1);
  CHECK(figuresOf(arrayOf<uint16_t>("F16", halves)).min == "-2");
  const uint16_t upper[] = {0x3f80, 0xc040};  // 1, -3
  CHECK(figuresOf(arrayOf<uint16_t>("BF16", upper)).mean == "-1");
}

TEST_CASE("figuresOf: an array without finite values has neither a smallest value nor a mean") {
  CHECK(figuresOf(arrayOf<float>("F32", nullptr)).min == "");
  const float nan[] = {NAN};
  CHECK(figuresOf(arrayOf<float>("F32", nan)).mean == "");
}

TEST_CASE("differenceOf: counts values whose bits differ, and finds the first and the largest") {
  const float a[] = {1, 2, 3, NAN, 0, NAN}, b[] = {1, 2.5, 1, NAN, -0.0f, 4};
  auto found = differenceOf(arrayOf<float>("F32", a), arrayOf<float>("F32", b));
  CHECK(found.values == 4);
  CHECK(found.first == 1);
  CHECK(found.largest == 2);
  CHECK(found.notFinite == 1);
  CHECK(differenceOf(arrayOf<float>("F32", a), arrayOf<float>("F32", a)).values == 0);
  const uint64_t c[] = {5}, d[] = {7};
  CHECK(differenceOf(arrayOf<uint64_t>("U64", c), arrayOf<uint64_t>("U64", d)).largest == 2);
  const int64_t least[] = {INT64_MIN}, most[] = {INT64_MAX};
  CHECK(differenceOf(arrayOf<int64_t>("I64", least), arrayOf<int64_t>("I64", most)).largest ==
        double(UINT64_MAX));
  const uint16_t g[] = {0x3c00, 0x7e01}, h[] = {0xc000, 0x7e02};  // 1 and -2, two NaNs
  CHECK(differenceOf(arrayOf<uint16_t>("F16", g), arrayOf<uint16_t>("F16", h)).values == 2);
  CHECK(differenceOf(arrayOf<uint16_t>("F16", g), arrayOf<uint16_t>("F16", h)).largest == 3);
  const double e[] = {1}, f[] = {1.5};
  CHECK(differenceOf(arrayOf<double>("F64", e), arrayOf<double>("F64", f)).largest == 0.5);
}

}  // namespace
}  // namespace runner
