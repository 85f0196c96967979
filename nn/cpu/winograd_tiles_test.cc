#include "nn/cpu/winograd_tiles.h"

#include <doctest/doctest.h>
#include <kj/vector.h>

namespace nn::cpu {
namespace {

constexpr Winograd KERNELS = {.window = 3, .side = 6, .slots = 37, .panel = 8};

TEST_CASE("winograd: tiles of three and four pixels cover every side from 3 on exactly, except 5") {
  for (uint pixels = 1; pixels <= 60; ++pixels) {
    CAPTURE(pixels);
    CutSide side(pixels);
    uint covered = 4 * side.fours + 3 * side.threes;
    CHECK(covered >= pixels);
    CHECK(covered - pixels <= 2);
    CHECK(((covered == pixels) == (pixels > 2 && pixels != 5)));
    // The tiles follow each other without gaps.
    uint end = 0;
    for (uint outputs: {4u, 3u}) {
      for (uint i = 0; i < side.tiles(outputs); ++i) {
        CHECK(side.begin(outputs, i) == end);
        end += outputs;
      }
    }
    CHECK(end == covered);
  }
}

TEST_CASE("winograd: each pixel of each image is in one tile of one group") {
  for (uint height: {3u, 7u, 14u, 28u}) {
    for (uint width: {4u, 6u, 15u}) {
      for (uint images: {1u, 5u, 64u}) {
        CAPTURE(height);
        CAPTURE(width);
        CAPTURE(images);
        Tiling tiling(height, width, KERNELS);
        auto seen = kj::heapArray<uint>(images * height * width);
        for (auto& count: seen) count = 0;
        for (uint g = 0; g < tiling.groups(images); ++g) {
          auto group = tiling.group(images, g);
          CHECK(group.panels <= tiling.panelMax(images));
          auto places = kj::heapArray<bool>(group.panels * 8);
          for (auto& place: places) place = false;
          tiling.eachTile(group, [&](const Tile& tile, size_t i, size_t image) {
            REQUIRE(i < places.size());
            CHECK(!places[i]);
            places[i] = true;
            for (uint y = 0; y < tile.rows; ++y) {
              for (uint x = 0; x < tile.columns; ++x) {
                ++seen[(image * height + tile.row + y) * width + tile.column + x];
              }
            }
          });
        }
        for (auto count: seen) REQUIRE(count == 1);
      }
    }
  }
}

TEST_CASE("winograd: the runs of a point hold exactly the tiles that have the point") {
  // 7 pixels are a tile of four and one of three: a quarter of the tiles is of each size.
  Tiling tiling(7, 7, KERNELS);
  auto group = tiling.group(16, 0);
  size_t tiles = 0;
  for (auto& run: group.runs) tiles += run.count;
  CHECK(tiles > 0);
  uint points = 0;
  tiling.eachPoint(group, [&](size_t point, kj::ArrayPtr<const PanelRun> runs) {
    size_t here = 0;
    for (auto& run: runs) here += run.tiles;
    bool isLastRow = point / 6 == 5, isLastColumn = point % 6 == 5;
    CHECK(here == tiles / ((isLastRow ? 2 : 1) * (isLastColumn ? 2 : 1)));
    ++points;
  });
  CHECK(points == 36);
}

}  // namespace
}  // namespace nn::cpu
