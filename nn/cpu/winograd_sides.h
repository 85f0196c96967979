// nn/cpu/winograd_sides.h: Winograd's transforms of one vector of channels at a time, as templates
// over a vector type.
#pragma once

#include "nn/cpu/winograd.h"

// Forces inlining into the caller, so that values stay in registers.
#define INLINE __attribute__((always_inline))

namespace nn::cpu {

// The pairs of points x and -x, for windows of 3×3 and of 5×5. They have few bits, so that their
// powers are exact.
template <size_t window>
inline constexpr float WINOGRAD_PAIRS[1] = {};
template <>
inline constexpr float WINOGRAD_PAIRS<3>[2] = {0.625f, 1.5f};
template <>
inline constexpr float WINOGRAD_PAIRS<5>[3] = {0.5f, 1, 2};

// `S` is a vector type's operations: Vector, set, add, …; see vector_avx512.h. The matrices A, B
// and G are those of winograd.h.
template <typename S, size_t window>
struct WinogradSides {
  using V = typename S::Vector;
  static constexpr size_t SIDE = WINOGRAD_SIDE<window>, PAIRS = SIDE / 2 - 1;
  static constexpr auto& X = WINOGRAD_PAIRS<window>;

  // Numbers that follow from the points.
  struct Constants {
    float powers[5][PAIRS];  // of X
    // The polynomial with zeros at all pairs, and those with zeros at all pairs but one:
    // coefficients of the even powers, without the highest, which is 1.
    float all[PAIRS];
    float others[PAIRS][PAIRS - 1];
    // Products of a point's distances from the other finite ones: of 0, and of each pair.
    float zeroDistance, distance[PAIRS];
    float shares[5][PAIRS];  // powers over distances

    constexpr Constants() {
      for (size_t p = 0; p < PAIRS; p++) {
        powers[0][p] = 1;
        for (size_t n = 1; n < 5; n++) powers[n][p] = powers[n - 1][p] * X[p];
      }
      multiplyOut(PAIRS, all);
      zeroDistance = all[0];
      for (size_t p = 0; p < PAIRS; p++) {
        multiplyOut(p, others[p]);
        distance[p] = 2 * powers[2][p];
        for (size_t q = 0; q < PAIRS; q++) {
          if (q != p) distance[p] *= powers[2][p] - powers[2][q];
        }
        for (size_t n = 0; n < 5; n++) shares[n][p] = powers[n][p] / distance[p];
      }
    }

  private:
    // Sets the coefficients of the product of x² - p² over all pairs but number `except`.
    constexpr void multiplyOut(size_t except, float* coefficients) const {
      float product[PAIRS + 1] = {1};
      size_t degree = 0;
      for (size_t p = 0; p < PAIRS; p++) {
        if (p == except) continue;
        ++degree;
        for (size_t n = degree; n > 0; n--) {
          product[n] = product[n - 1] - powers[2][p] * product[n];
        }
        product[0] *= -powers[2][p];
      }
      for (size_t n = 0; n < degree; n++) coefficients[n] = product[n];
    }
  };
  static constexpr Constants C = {};

  // Evaluates a polynomial of even powers at `at`: elements `first`, `first + 2`, …
  template <size_t degree>
  static INLINE V polynomial(const float (&coefficients)[degree], size_t first, auto&& at) {
    V sum = at(first + 2 * degree);
#pragma GCC unroll 3
    for (size_t k = 1; k <= degree; k++) {
      size_t n = degree - k;
      sum = S::fma(S::set(coefficients[n]), at(first + 2 * n), sum);
    }
    return sum;
  }
  // Adds the products of weights[p] and terms[p] to `sum`.
  static INLINE V addWeighted(const float (&weights)[PAIRS], const V* terms, V sum) {
#pragma GCC unroll 3
    for (size_t p = 0; p < PAIRS; p++) sum = S::fma(S::set(weights[p]), terms[p], sum);
    return sum;
  }
  static INLINE V weighted(const float (&weights)[PAIRS], const V* terms) {
    V sum = S::mul(S::set(weights[0]), terms[0]);
#pragma GCC unroll 2
    for (size_t p = 1; p < PAIRS; p++) sum = S::fma(S::set(weights[p]), terms[p], sum);
    return sum;
  }

  // The transforms along one side. Each comes in parts. A part makes a few outputs that share
  // inputs: `at` reads an input, `put` takes an output. If the outputs are points, there is one
  // part for point 0, one for each pair, and one for ∞ unless the tile lacks ∞.
  static constexpr size_t INFINITE = PAIRS + 1;

  // t = B' d. The row of B' for a point has the coefficients of the polynomial with zeros at all
  // other finite points. The row for ∞ has those of the polynomial with zeros at all finite points.
  template <size_t points>
  struct Input {
    static constexpr size_t INPUTS = points, OUTPUTS = points, PARTS = points - PAIRS;

    template <size_t part>
    static INLINE void run(auto&& at, auto&& put) {
      if constexpr (part == 0) {
        put(0, polynomial(C.all, 0, at));
      } else if constexpr (part == INFINITE) {
        put(SIDE - 1, polynomial(C.all, 1, at));
      } else {
        V even = polynomial(C.others[part - 1], 2, at);
        V odd = S::mul(S::set(X[part - 1]), polynomial(C.others[part - 1], 1, at));
        put(2 * part - 1, S::add(even, odd));
        put(2 * part, S::sub(even, odd));
      }
    }
  };

  // d = B t.
  template <size_t points>
  struct InputBack {
    static constexpr size_t INPUTS = points, OUTPUTS = points, PARTS = 2;

    // Even elements come from 0 and the pairs, odd ones from ∞ and the pairs.
    template <size_t part>
    static INLINE void run(auto&& at, auto&& put) {
      constexpr bool odd = part == 1, hasOwn = !odd || points == SIDE;
      V terms[PAIRS];
#pragma GCC unroll 3
      for (size_t p = 0; p < PAIRS; p++) {
        V plus = at(2 * p + 1), minus = at(2 * p + 2);
        terms[p] = odd ? S::mul(S::set(X[p]), S::sub(plus, minus)) : S::add(plus, minus);
      }
      V own = hasOwn ? at(odd ? SIDE - 1 : 0) : S::zero();
      // `n` counts the even powers of the polynomials, whose highest coefficient is 1.
#pragma GCC unroll 4
      for (size_t n = 0; n < PAIRS + (hasOwn ? 1 : 0); n++) {
        V sum = n == PAIRS ? own : hasOwn ? S::mul(S::set(C.all[n]), own) : S::zero();
        size_t shifted = odd ? n : n - 1;
        if (shifted < PAIRS) {
#pragma GCC unroll 3
          for (size_t p = 0; p < PAIRS; p++) {
            bool isHighest = shifted == PAIRS - 1;
            sum = isHighest ? S::add(sum, terms[p])
                            : S::fma(S::set(C.others[p][shifted]), terms[p], sum);
          }
        }
        put(2 * n + part, sum);
      }
    }
  };

  // y = A' m.
  template <size_t points>
  struct Output {
    static constexpr size_t INPUTS = points, OUTPUTS = points - window + 1, PARTS = 2;

    template <size_t part>
    static INLINE void run(auto&& at, auto&& put) {
      V terms[PAIRS];
      if constexpr (part == 0) {
        V sum = at(0);
#pragma GCC unroll 3
        for (size_t p = 0; p < PAIRS; p++) {
          terms[p] = S::add(at(2 * p + 1), at(2 * p + 2));
          sum = S::add(sum, terms[p]);
        }
        put(0, sum);
        put(2, weighted(C.powers[2], terms));
      } else {
#pragma GCC unroll 3
        for (size_t p = 0; p < PAIRS; p++) terms[p] = S::sub(at(2 * p + 1), at(2 * p + 2));
        put(1, weighted(X, terms));
        if constexpr (points == SIDE) put(3, addWeighted(C.powers[3], terms, at(SIDE - 1)));
      }
    }
  };

  // m = A d.
  template <size_t points>
  struct Gradient {
    static constexpr size_t INPUTS = points - window + 1, OUTPUTS = points, PARTS = points - PAIRS;

    template <size_t part>
    static INLINE void run(auto&& at, auto&& put) {
      if constexpr (part == 0) {
        put(0, at(0));
      } else if constexpr (part == INFINITE) {
        put(SIDE - 1, at(3));
      } else {
        V square = S::set(C.powers[2][part - 1]);
        V even = S::fma(square, at(2), at(0)), odd = at(1);
        if constexpr (points == SIDE) odd = S::fma(square, at(3), odd);
        odd = S::mul(S::set(X[part - 1]), odd);
        put(2 * part - 1, S::add(even, odd));
        put(2 * part, S::sub(even, odd));
      }
    }
  };

  // u = G g. Rows of G: the powers of each point, over its distances.
  struct Weights {
    static constexpr size_t INPUTS = window, OUTPUTS = SIDE, PARTS = SIDE - PAIRS;

    template <size_t part>
    static INLINE void run(auto&& at, auto&& put) {
      if constexpr (part == 0) {
        put(0, S::mul(S::set(1 / C.zeroDistance), at(0)));
      } else if constexpr (part == INFINITE) {
        put(SIDE - 1, at(window - 1));
      } else {
        constexpr size_t pair = part - 1;
        constexpr float share = C.shares[0][pair];
        V even = S::fma(S::set(C.powers[2][pair]), at(2), at(0)), odd = at(1);
        if constexpr (window == 5) {
          even = S::fma(S::set(C.powers[4][pair]), at(4), even);
          odd = S::fma(S::set(C.powers[2][pair]), at(3), odd);
        }
        even = S::mul(S::set(share), even);
        odd = S::mul(S::set(share * X[pair]), odd);
        put(2 * part - 1, S::add(even, odd));
        put(2 * part, S::sub(even, odd));
      }
    }
  };

  // g = G' u.
  struct WeightsBack {
    static constexpr size_t INPUTS = SIDE, OUTPUTS = window, PARTS = 2;

    template <size_t part>
    static INLINE void run(auto&& at, auto&& put) {
      V terms[PAIRS];
      if constexpr (part == 0) {
#pragma GCC unroll 3
        for (size_t p = 0; p < PAIRS; p++) {
          terms[p] = S::mul(S::set(C.shares[0][p]), S::add(at(2 * p + 1), at(2 * p + 2)));
        }
        V sum = terms[0];
#pragma GCC unroll 2
        for (size_t p = 1; p < PAIRS; p++) sum = S::add(sum, terms[p]);
        put(0, S::fma(S::set(1 / C.zeroDistance), at(0), sum));
        if constexpr (window == 5) put(2, weighted(C.powers[2], terms));
        put(window - 1, addWeighted(C.powers[window - 1], terms, at(SIDE - 1)));
      } else {
#pragma GCC unroll 3
        for (size_t p = 0; p < PAIRS; p++) terms[p] = S::sub(at(2 * p + 1), at(2 * p + 2));
        put(1, weighted(C.shares[1], terms));
        if constexpr (window == 5) put(3, weighted(C.shares[3], terms));
      }
    }
  };

  // All parts of one side's transform.
  template <typename Transform>
  static INLINE void along(auto&& at, auto&& put) {
    Transform::template run<0>(at, put);
    Transform::template run<1>(at, put);
    if constexpr (Transform::PARTS > 2) Transform::template run<2>(at, put);
    if constexpr (Transform::PARTS > 3) Transform::template run<3>(at, put);
    if constexpr (Transform::PARTS > 4) Transform::template run<4>(at, put);
  }

  // Does one part of the rows' transform, and then the columns' transform of the rows that it
  // makes. These are one or two rows, which fit into registers, or three rows for the gradient of
  // 5×5 weights, or half of a patch.
  template <typename Rows, typename Columns, size_t part>
  static INLINE void alongBoth(auto&& at, auto&& put) {
    V half[SIDE][Columns::INPUTS];
    bool isMade[SIDE] = {};
#pragma GCC unroll 8
    for (size_t j = 0; j < Columns::INPUTS; j++) {
      Rows::template run<part>([&](size_t i) INLINE { return at(i, j); },
          [&](size_t i, V value) INLINE {
            half[i][j] = value;
            isMade[i] = true;
          });
    }
#pragma GCC unroll 8
    for (size_t i = 0; i < Rows::OUTPUTS; i++) {
      if (!isMade[i]) continue;
      along<Columns>([&](size_t j) INLINE { return half[i][j]; },
          [&](size_t j, V value) INLINE { put(i, j, value); });
    }
  }

  // The transform of a patch: `at` reads an element, `put` takes one.
  template <typename Rows, typename Columns>
  static INLINE void transform(auto&& at, auto&& put) {
    alongBoth<Rows, Columns, 0>(at, put);
    alongBoth<Rows, Columns, 1>(at, put);
    if constexpr (Rows::PARTS > 2) alongBoth<Rows, Columns, 2>(at, put);
    if constexpr (Rows::PARTS > 3) alongBoth<Rows, Columns, 3>(at, put);
    if constexpr (Rows::PARTS > 4) alongBoth<Rows, Columns, 4>(at, put);
  }
};

}  // namespace nn::cpu
