#include "nn/confusion.h"

#include <doctest/doctest.h>
#include <kj/string.h>

#include "nn/softmax.h"

namespace nn {
namespace {

// Returns the cells as `label>predicted:images `.
kj::String textOf(const Confusion& confusion) {
  auto cells = KJ_MAP(cell, confusion.cells()) {
    return kj::str(cell.label, '>', cell.predicted, ':', cell.images, ' ');
  };
  return kj::strArray(cells, "");
}

TEST_CASE("Confusion: counts labels and predictions of the rows with a label") {
  const float logits[] = {0, 1, 0, 5, 2, 5, 9, 0, 0, 0, 0, 7};
  Confusion confusion;
  confusion.add(logits, {1, 2, -1, 0});
  // Of equal logits the first is the prediction.
  CHECK(textOf(confusion) == "0>2:1 1>1:1 2>0:1 ");
  confusion.add(logits, {1, 0, 1, -1});
  CHECK(textOf(confusion) == "0>0:1 0>2:1 1>0:1 1>1:2 2>0:1 ");
  confusion.clear();
  CHECK(textOf(confusion) == "");
}

TEST_CASE("Confusion: the cells on the diagonal are the images that judge() calls correct") {
  constexpr uint ROWS = 50, CLASSES = 4;
  float logits[ROWS * CLASSES];
  int32_t labels[ROWS];
  for (uint i = 0; i < ROWS * CLASSES; i++) logits[i] = i * 7 % 11;
  for (uint n = 0; n < ROWS; n++) labels[n] = int(n % (CLASSES + 1)) - 1;
  Confusion confusion;
  confusion.add(logits, labels);
  BatchResult sums;
  for (auto& cell: confusion.cells()) {
    sums.images += cell.images;
    if (cell.label == cell.predicted) sums.correct += cell.images;
  }
  auto judged = judge(logits, labels);
  CHECK(sums.images == judged.images);
  CHECK(sums.correct == judged.correct);
}

TEST_CASE("Confusion: adds up the cells of several parts, of any class") {
  Confusion confusion;
  confusion.add({70000, 3, 2});
  confusion.add({2, 70000, 5});
  confusion.add({70000, 3, 40});
  CHECK(textOf(confusion) == "2>70000:5 70000>3:42 ");
}

}  // namespace
}  // namespace nn
