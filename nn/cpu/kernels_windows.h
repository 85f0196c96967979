// nn/cpu/kernels_windows.h: the loops of nn/cpu/kernels.h over windows of an image.
#pragma once

#include "nn/cpu/kernels.h"

namespace nn::cpu {

// `S` is a vector type's operations, see vector_avx2.h; it loads and stores `E`. A pixel has B
// values in each block: channels, or channels of a group of images.
template <typename S, typename E, size_t B = S::WIDTH>
struct WindowLoops {
  using V = typename S::Vector;
  using M = typename S::Mask;
  static constexpr size_t WIDTH = S::WIDTH;

  // The part of a window that is inside the image: rows and columns relative to the window's
  // corner.
  struct Clip {
    int top, left;  // the window's corner in the image
    int rowBegin, rowEnd, columnBegin, columnEnd;

    Clip(const Window& w, size_t row, size_t column)
        : top(int(row * w.stride) - int(w.pad)), left(int(column * w.stride) - int(w.pad)) {
      rowBegin = top < 0 ? -top : 0;
      columnBegin = left < 0 ? -left : 0;
      rowEnd = int(w.inHeight) - top < int(w.kernel) ? int(w.inHeight) - top : int(w.kernel);
      columnEnd = int(w.inWidth) - left < int(w.kernel) ? int(w.inWidth) - left : int(w.kernel);
    }
    bool isWhole(const Window& w) const {
      return rowBegin == 0 && columnBegin == 0 && rowEnd == int(w.kernel) &&
             columnEnd == int(w.kernel);
    }
    size_t at(const Window& w, int u, int v) const {
      return (size_t(top + u) * w.inWidth + size_t(left + v)) * B;
    }
  };

  // Writes the largest value of a window and its place.
  static void maxOf(const E* x, const Window& w, const Clip& clip, E* out, uint16_t* index) {
    for (size_t i = 0; i < B; i += WIDTH) {
      V best = S::load(x + i + clip.at(w, clip.rowBegin, clip.columnBegin));
      V place = S::set(float(clip.rowBegin * int(w.kernel) + clip.columnBegin));
      for (int u = clip.rowBegin; u < clip.rowEnd; u++) {
        for (int v = clip.columnBegin; v < clip.columnEnd; v++) {
          V value = S::load(x + i + clip.at(w, u, v));
          M more = S::greater(value, best);
          best = S::select(more, value, best);
          place = S::select(more, S::set(float(u * int(w.kernel) + v)), place);
        }
      }
      S::store(out + i, best);
      if (index != nullptr) S::storeIndex(index + i, place);
    }
  }

  // Does the same for a window that is inside the image and has SIDE rows. Its loops have no
  // branches.
  template <size_t SIDE>
  static void maxInside(const E* x, size_t rowValues, E* out, uint16_t* index) {
    for (size_t i = 0; i < B; i += WIDTH) {
      V best = S::load(x + i), place = S::zero();
#pragma GCC unroll 3
      for (size_t u = 0; u < SIDE; u++) {
#pragma GCC unroll 3
        for (size_t v = 0; v < SIDE; v++) {
          V value = S::load(x + i + u * rowValues + v * B);
          M more = S::greater(value, best);
          best = S::select(more, value, best);
          place = S::select(more, S::set(float(u * SIDE + v)), place);
        }
      }
      S::store(out + i, best);
      if (index != nullptr) S::storeIndex(index + i, place);
    }
  }

  static void maxPool(
      const void* image, const Window& w, void* result, uint16_t* index, size_t blocks) {
    auto* x = static_cast<const E*>(image);
    auto* out = static_cast<E*>(result);
    for (size_t c = 0; c < blocks; c++, x += size_t(w.inHeight) * w.inWidth * B) {
      for (size_t row = 0; row < w.outHeight; row++) {
        for (size_t column = 0; column < w.outWidth; column++, out += B) {
          Clip clip(w, row, column);
          bool isWhole = clip.isWhole(w);
          if (isWhole && w.kernel == 2) {
            maxInside<2>(x + clip.at(w, 0, 0), w.inWidth * B, out, index);
          } else if (isWhole && w.kernel == 3) {
            maxInside<3>(x + clip.at(w, 0, 0), w.inWidth * B, out, index);
          } else {
            maxOf(x, w, clip, out, index);
          }
          if (index != nullptr) index += B;
        }
      }
    }
  }

  // The windows that a row or column lies in: from `begin` to `end` - 1. Call moveTo() with rows or
  // columns in ascending order.
  struct Cover {
    size_t begin = 0, end = 0;

    void moveTo(size_t pixel, const Window& w, size_t windows) {
      while (end < windows && end * w.stride <= pixel + w.pad) end++;
      while (begin * w.stride + w.kernel <= pixel + w.pad) begin++;
    }
  };

  // Sets each pixel of `dx` to the sum of share(at, u, v) over the windows it lies in, in their
  // order, or adds this sum to it. `at` is where the block of the window's output begins. u and v
  // are the pixel's row and column in the window.
  template <Write write, typename Share>
  static void gatherGradient(const Window& w, E* dx, size_t blocks, Share&& share) {
    size_t plane = size_t(w.outHeight) * w.outWidth;
    for (size_t c = 0; c < blocks; c++) {
      Cover rows;
      for (size_t row = 0; row < w.inHeight; row++) {
        rows.moveTo(row, w, w.outHeight);
        Cover columns;
        for (size_t column = 0; column < w.inWidth; column++, dx += B) {
          columns.moveTo(column, w, w.outWidth);
          for (size_t lane = 0; lane < B; lane += WIDTH) {
            V sum = write == Write::ADD ? S::load(dx + lane) : S::zero();
            for (size_t i = rows.begin; i < rows.end; i++) {
              for (size_t j = columns.begin; j < columns.end; j++) {
                size_t u = row + w.pad - i * w.stride, v = column + w.pad - j * w.stride;
                sum = S::add(sum, share((c * plane + i * w.outWidth + j) * B + lane, u, v));
              }
            }
            S::store(dx + lane, sum);
          }
        }
      }
    }
  }

  // Does the same for a max pool whose windows have SIDE rows and divide the image into tiles. Each
  // pixel lies in one window.
  template <size_t SIDE, Write write>
  static void scatterToTiles(
      const E* gradient, const uint16_t* index, const Window& w, E* dx, size_t blocks) {
    size_t rowValues = w.inWidth * B;
    for (size_t row = 0; row < blocks * w.outHeight; row++, dx += SIDE * rowValues) {
      for (size_t column = 0; column < w.outWidth; column++) {
        for (size_t i = 0; i < B; i += WIDTH, gradient += WIDTH, index += WIDTH) {
          V g = S::load(gradient), place = S::loadIndex(index);
          E* to = dx + column * SIDE * B + i;
#pragma GCC unroll 3
          for (size_t u = 0; u < SIDE; u++) {
#pragma GCC unroll 3
            for (size_t v = 0; v < SIDE; v++) {
              E* pixel = to + u * rowValues + v * B;
              V share = S::select(S::equal(place, S::set(float(u * SIDE + v))), g, S::zero());
              S::store(pixel, S::add(write == Write::ADD ? S::load(pixel) : S::zero(), share));
            }
          }
        }
      }
    }
  }

  template <Write write>
  static void maxPoolBackwardAs(
      const E* gradient, const uint16_t* index, const Window& w, E* dx, size_t blocks) {
    bool areTiles = w.kernel == 2 && w.stride == 2 && w.pad == 0 && w.outHeight * 2 == w.inHeight &&
                    w.outWidth * 2 == w.inWidth;
    if (areTiles) {
      scatterToTiles<2, write>(gradient, index, w, dx, blocks);
      return;
    }
    gatherGradient<write>(w, dx, blocks, [&](size_t at, size_t u, size_t v) {
      M here = S::equal(S::loadIndex(index + at), S::set(float(u * w.kernel + v)));
      return S::select(here, S::load(gradient + at), S::zero());
    });
  }

  static void maxPoolBackward(const void* gradient, const uint16_t* index, const Window& w,
      void* dx, Write write, size_t blocks) {
    auto loop = write == Write::SET ? maxPoolBackwardAs<Write::SET> : maxPoolBackwardAs<Write::ADD>;
    loop(static_cast<const E*>(gradient), index, w, static_cast<E*>(dx), blocks);
  }

  static void averagePool(const void* image, const Window& w, void* result, size_t blocks) {
    auto* x = static_cast<const E*>(image);
    auto* out = static_cast<E*>(result);
    V share = S::set(1.0f / (float(w.kernel) * float(w.kernel)));
    for (size_t c = 0; c < blocks; c++, x += size_t(w.inHeight) * w.inWidth * B) {
      for (size_t row = 0; row < w.outHeight; row++) {
        for (size_t column = 0; column < w.outWidth; column++, out += B) {
          Clip clip(w, row, column);
          for (size_t i = 0; i < B; i += WIDTH) {
            V sum = S::zero();
            for (int u = clip.rowBegin; u < clip.rowEnd; u++) {
              for (int v = clip.columnBegin; v < clip.columnEnd; v++) {
                sum = S::add(sum, S::load(x + i + clip.at(w, u, v)));
              }
            }
            S::store(out + i, S::mul(sum, share));
          }
        }
      }
    }
  }

  static void averagePoolBackward(
      const void* gradient, const Window& w, void* dx, Write write, size_t blocks) {
    auto* g = static_cast<const E*>(gradient);
    V part = S::set(1.0f / (float(w.kernel) * float(w.kernel)));
    auto share = [&](size_t at, size_t, size_t) { return S::mul(S::load(g + at), part); };
    if (write == Write::SET) {
      gatherGradient<Write::SET>(w, static_cast<E*>(dx), blocks, share);
    } else {
      gatherGradient<Write::ADD>(w, static_cast<E*>(dx), blocks, share);
    }
  }

  static bool isInside(const Clip& clip, int u, int v) {
    return u >= clip.rowBegin && u < clip.rowEnd && v >= clip.columnBegin && v < clip.columnEnd;
  }

  static void gatherWindows(
      const void* image, const Window& w, size_t channels, size_t begin, size_t end, float* rows) {
    auto* x = static_cast<const E*>(image);
    size_t blocks = (channels + B - 1) / B, plane = size_t(w.inHeight) * w.inWidth * B;
    for (size_t pixel = begin; pixel < end; pixel++) {
      Clip clip(w, pixel / w.outWidth, pixel % w.outWidth);
      for (int u = 0; u < int(w.kernel); u++) {
        for (int v = 0; v < int(w.kernel); v++, rows += channels) {
          // The next place overwrites the padding of the last block.
          if (isInside(clip, u, v)) {
            const E* from = x + clip.at(w, u, v);
            for (size_t c = 0; c < blocks; c++) S::store(rows + c * B, S::load(from + c * plane));
          } else {
            for (size_t c = 0; c < blocks; c++) S::store(rows + c * B, S::zero());
          }
        }
      }
    }
  }

  static void scatterWindows(
      const float* rows, const Window& w, size_t channels, size_t begin, size_t end, void* image) {
    auto* x = static_cast<E*>(image);
    static constexpr float LANES[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    size_t last = (channels - 1) / B, plane = size_t(w.inHeight) * w.inWidth * B;
    M isChannel = S::greater(S::set(float(channels - last * B)), S::load(LANES));
    for (size_t pixel = begin; pixel < end; pixel++) {
      Clip clip(w, pixel / w.outWidth, pixel % w.outWidth);
      for (int u = 0; u < int(w.kernel); u++) {
        for (int v = 0; v < int(w.kernel); v++, rows += channels) {
          if (!isInside(clip, u, v)) continue;
          E* to = x + clip.at(w, u, v);
          for (size_t c = 0; c < last; c++, to += plane) {
            S::store(to, S::add(S::load(to), S::load(rows + c * B)));
          }
          V value = S::select(isChannel, S::load(rows + last * B), S::zero());
          S::store(to, S::add(S::load(to), value));
        }
      }
    }
  }
};

}  // namespace nn::cpu
