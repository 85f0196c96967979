// nn/cpu/winograd_sides.h: Winograd's transforms of one vector of channels at a time, as templates
// over a vector type.
#pragma once

#include "nn/cpu/winograd.h"

// Of what has to become one piece of code with its caller, so that its values stay in registers.
#define INLINE __attribute__((always_inline))

namespace nn::cpu {

// `S` is a vector type's operations: Vector, set, add, …; see vector_avx512.h. The matrices A, B
// and G are those of winograd.h.
template <typename S>
struct WinogradSides {
  using V = typename S::Vector;
  static constexpr size_t SIDE = Winograd::SIDE;

  // The points a and b, their squares and cubes: exact.
  static constexpr float P = 0.625f, P2 = P * P, P3 = P2 * P;
  static constexpr float Q = 1.5f, Q2 = Q * Q, Q3 = Q2 * Q;

  // The transforms along one side. Each comes in parts, which make one or two outputs from inputs
  // that they share: `at` reads an input, `put` takes an output.

  // t = B' d. Rows of B': the polynomials with zeros at all other finite points; that of ∞ at all
  // of them.
  template <size_t points>
  struct Input {
    static constexpr size_t INPUTS = points, OUTPUTS = points, PARTS = points - 2;

    template <size_t part>
    static INLINE void run(auto&& at, auto&& put) {
      if constexpr (part == 0) {
        V rest = S::negatedFma(S::set(P2 + Q2), at(2), at(4));
        put(0, S::fma(S::set(P2 * Q2), at(0), rest));
      } else if constexpr (part == 3) {
        V rest = S::negatedFma(S::set(P2 + Q2), at(3), at(5));
        put(5, S::fma(S::set(P2 * Q2), at(1), rest));
      } else {
        constexpr float own = part == 1 ? P : Q, other2 = part == 1 ? Q2 : P2;
        V even = S::negatedFma(S::set(other2), at(2), at(4));
        V odd = S::mul(S::set(own), S::negatedFma(S::set(other2), at(1), at(3)));
        put(2 * part - 1, S::add(even, odd));
        put(2 * part, S::sub(even, odd));
      }
    }
  };

  // y = A' m.
  template <size_t points>
  struct Output {
    static constexpr size_t INPUTS = points, OUTPUTS = points - 2, PARTS = 2;

    template <size_t part>
    static INLINE void run(auto&& at, auto&& put) {
      if constexpr (part == 0) {
        V p = S::add(at(1), at(2)), q = S::add(at(3), at(4));
        put(0, S::add(S::add(at(0), p), q));
        put(2, S::fma(S::set(Q2), q, S::mul(S::set(P2), p)));
      } else {
        V p = S::sub(at(1), at(2)), q = S::sub(at(3), at(4));
        put(1, S::fma(S::set(Q), q, S::mul(S::set(P), p)));
        if constexpr (points == SIDE) {
          put(3, S::fma(S::set(Q3), q, S::fma(S::set(P3), p, at(5))));
        }
      }
    }
  };

  // m = A d.
  template <size_t points>
  struct Gradient {
    static constexpr size_t INPUTS = points - 2, OUTPUTS = points, PARTS = points - 2;

    template <size_t part>
    static INLINE void run(auto&& at, auto&& put) {
      if constexpr (part == 0) {
        put(0, at(0));
      } else if constexpr (part == 3) {
        put(5, at(3));
      } else {
        constexpr float own = part == 1 ? P : Q, own2 = part == 1 ? P2 : Q2;
        V even = S::fma(S::set(own2), at(2), at(0)), odd = at(1);
        if constexpr (points == SIDE) odd = S::fma(S::set(own2), at(3), odd);
        odd = S::mul(S::set(own), odd);
        put(2 * part - 1, S::add(even, odd));
        put(2 * part, S::sub(even, odd));
      }
    }
  };

  // Products of a point's distances from the other finite ones: 0, ±a, ±b.
  static constexpr float ZERO = P2 * Q2, ONE = 2 * P2 * (P2 - Q2), TWO = 2 * Q2 * (Q2 - P2);

  // u = G g. Rows of G: 1, x, x² of each point, over its distances.
  struct Weights {
    static constexpr size_t INPUTS = 3, OUTPUTS = SIDE, PARTS = 4;

    template <size_t part>
    static INLINE void run(auto&& at, auto&& put) {
      if constexpr (part == 0) {
        put(0, S::mul(S::set(1 / ZERO), at(0)));
      } else if constexpr (part == 3) {
        put(5, at(2));
      } else {
        constexpr float share = part == 1 ? 1 / ONE : 1 / TWO, own = part == 1 ? P : Q;
        V even = S::mul(S::set(share), S::fma(S::set(own * own), at(2), at(0)));
        V odd = S::mul(S::set(share * own), at(1));
        put(2 * part - 1, S::add(even, odd));
        put(2 * part, S::sub(even, odd));
      }
    }
  };

  // g = G' u.
  struct WeightsBack {
    static constexpr size_t INPUTS = SIDE, OUTPUTS = 3, PARTS = 2;

    template <size_t part>
    static INLINE void run(auto&& at, auto&& put) {
      if constexpr (part == 0) {
        V p = S::mul(S::set(1 / ONE), S::add(at(1), at(2)));
        V q = S::mul(S::set(1 / TWO), S::add(at(3), at(4)));
        put(0, S::fma(S::set(1 / ZERO), at(0), S::add(p, q)));
        put(2, S::fma(S::set(Q2), q, S::fma(S::set(P2), p, at(5))));
      } else {
        V p = S::sub(at(1), at(2)), q = S::sub(at(3), at(4));
        put(1, S::fma(S::set(Q / TWO), q, S::mul(S::set(P / ONE), p)));
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
  }

  // A part of the rows' transform, and the columns' transform of what it makes: two rows at most,
  // which fit into registers.
  template <typename Rows, typename Columns, size_t part>
  static INLINE void alongBoth(auto&& at, auto&& put) {
    V half[SIDE][Columns::INPUTS];
    bool isMade[SIDE] = {};
#pragma GCC unroll 6
    for (size_t j = 0; j < Columns::INPUTS; j++) {
      Rows::template run<part>([&](size_t i) INLINE { return at(i, j); },
          [&](size_t i, V value) INLINE {
            half[i][j] = value;
            isMade[i] = true;
          });
    }
#pragma GCC unroll 6
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
  }
};

}  // namespace nn::cpu
