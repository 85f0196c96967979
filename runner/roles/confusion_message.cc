#include "runner/roles/confusion_message.h"

#include <kj/debug.h>

namespace runner {

void setCells(
    capnp::List<ConfusionCell>::Builder list, kj::ArrayPtr<const nn::ConfusionCell> cells) {
  for (auto i: kj::indices(cells)) {
    list[i].setLabel(cells[i].label);
    list[i].setPredicted(cells[i].predicted);
    list[i].setImages(cells[i].images);
  }
}

kj::Array<nn::ConfusionCell> cellsOf(
    capnp::List<ConfusionCell>::Reader list, uint classes, uint64_t images) {
  if (list.size() == 0) return nullptr;
  KJ_REQUIRE(list.size() <= images, "more cells than images", list.size(), images);
  auto cells = kj::heapArrayBuilder<nn::ConfusionCell>(list.size());
  uint64_t left = images;
  for (auto cell: list) {
    uint label = cell.getLabel(), predicted = cell.getPredicted();
    KJ_REQUIRE(label < classes && predicted < classes, "a cell of no class", label, predicted);
    KJ_REQUIRE(cells.size() == 0 || cells.back().label < label ||
                   (cells.back().label == label && cells.back().predicted < predicted),
        "cells in a wrong order", label, predicted);
    KJ_REQUIRE(cell.getImages() > 0 && cell.getImages() <= left,
        "a cell with too many images, or none", cell.getImages(), left);
    left -= cell.getImages();
    cells.add(nn::ConfusionCell{label, predicted, cell.getImages()});
  }
  KJ_REQUIRE(left == 0, "images without a cell", left);
  return cells.finish();
}

}  // namespace runner
