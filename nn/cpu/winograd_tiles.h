// nn/cpu/winograd_tiles.h: cuts the images of a chunk into tiles, and groups the tiles that go
// through Winograd's products together.
#pragma once

#include <kj/array.h>

#include "nn/cpu/winograd.h"

namespace nn::cpu {

using kj::uint;

// How a side of an image is cut into tiles. First come `fours` tiles of four pixels, then `threes`
// tiles of three pixels, which have one point less. So with 3×3 windows 7 pixels take 11 points,
// and not the 12 of two tiles of four. On sides of 1, 2 and 5 pixels the last tile is not full.
struct CutSide {
  uint fours, threes;

  explicit CutSide(uint pixels);
  uint tiles(uint pixels) const { return pixels == 4 ? fours : threes; }
  uint begin(uint pixels, uint i) const { return pixels == 4 ? 4 * i : 4 * fours + 3 * i; }
};

// Tiles of one size in a group: `count` of them, from the `first` on, counted over all images of
// the chunk. They are stored from `panel` on.
struct TileRun {
  uint rows, columns;  // of outputs
  size_t first, count, panel;
};

// Tiles that go through the products together: one run for each size, on `panels` panels.
struct TileGroup {
  TileRun runs[4];
  size_t panels;
};

// Groups tiles of all four sizes from the same few images, so that the transformed weights are read
// once for the whole group.
class Tiling {
public:
  // For outputs of height × width pixels.
  Tiling(uint height, uint width, const Winograd& kernels)
      : rows(height), columns(width), panel(kernels.panel), side(kernels.side) {}

  // Returns the number of tiles of an image.
  size_t tiles() const {
    return size_t(rows.fours + rows.threes) * (columns.fours + columns.threes);
  }
  // Returns the number of groups of a chunk, each of about 32 tiles.
  uint groups(uint images) const;
  TileGroup group(uint images, uint index) const;
  // Returns the panels of the largest group of a chunk.
  size_t panelMax(uint images) const;

  // Calls work(tile, i, image) for each tile of the group. The tile begins at its first output. `i`
  // is the place of the tile in the panels, counted in tiles.
  template <typename Work>
  void eachTile(const TileGroup& group, Work&& work) const {
    for (auto& run: group.runs) {
      uint across = columns.tiles(run.columns), perImage = rows.tiles(run.rows) * across;
      for (size_t i = 0; i < run.count; ++i) {
        uint within = (run.first + i) % perImage;
        Tile tile = {.row = int(rows.begin(run.rows, within / across)),
            .column = int(columns.begin(run.columns, within % across)),
            .rows = run.rows,
            .columns = run.columns};
        work(tile, run.panel * panel + i, (run.first + i) / perImage);
      }
    }
  }
  // Calls work(point, runs) for each point of a transformed tile. `runs` are the panels of the
  // tiles that have this point, because small tiles have fewer points.
  template <typename Work>
  void eachPoint(const TileGroup& group, Work&& work) const {
    auto has = [&](uint outputs, uint point) { return outputs == 4 || point + 1 < side; };
    for (uint i = 0; i < side; ++i) {
      for (uint j = 0; j < side; ++j) {
        PanelRun runs[4];
        size_t count = 0;
        for (auto& run: group.runs) {
          if (run.count > 0 && has(run.rows, i) && has(run.columns, j)) {
            runs[count++] = {run.panel, run.count};
          }
        }
        if (count > 0) work(i * side + j, kj::arrayPtr(runs, count));
      }
    }
  }

private:
  CutSide rows, columns;
  uint panel, side;
};

}  // namespace nn::cpu
