#include "nn/cpu/winograd_tiles.h"

namespace nn::cpu {
namespace {

// Groups of 8 to 96 tiles were measured, and are equally fast within 3 %. Larger groups need more
// memory. Smaller ones read the transformed weights more often.
constexpr size_t GROUP_TILES = 32;

}  // namespace

CutSide::CutSide(uint pixels): fours(pixels / 4), threes(0) {
  uint over = pixels % 4;
  if (over == 0) return;
  if (fours + 1 >= 4 - over) {
    threes = 4 - over;
    fours = fours + 1 - threes;
  } else {
    fours = 0;
    threes = (pixels + 2) / 3;
  }
}

uint Tiling::groups(uint images) const {
  return (images * tiles() + GROUP_TILES - 1) / GROUP_TILES;
}

TileGroup Tiling::group(uint images, uint index) const {
  TileGroup group;
  group.panels = 0;
  size_t all = groups(images);
  for (uint size = 0; size < 4; ++size) {
    auto& run = group.runs[size];
    run.rows = size < 2 ? 4 : 3;
    run.columns = size % 2 == 0 ? 4 : 3;
    // Its share of the tiles of this size: whole panels, but for the last group.
    size_t tiles = size_t(images) * rows.tiles(run.rows) * columns.tiles(run.columns);
    run.first = tiles * index / all / panel * panel;
    size_t end = index + 1 == all ? tiles : tiles * (index + 1) / all / panel * panel;
    run.count = end - run.first;
    run.panel = group.panels;
    group.panels += (run.count + panel - 1) / panel;
  }
  return group;
}

size_t Tiling::panelMax(uint images) const {
  size_t most = 0;
  for (uint i = 0; i < groups(images); ++i) most = kj::max(most, group(images, i).panels);
  return most;
}

}  // namespace nn::cpu
