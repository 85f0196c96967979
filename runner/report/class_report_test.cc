#include "runner/report/class_report.h"

#include <doctest/doctest.h>
#include <kj/vector.h>

#include "tests/text.h"

namespace runner {
namespace {

using kj::uint;
using tests::contains;
using tests::countOf;

// Returns the cells of `classes` classes of ten images. Class i is recognized i % 11 times, and
// otherwise taken for the next class.
kj::Array<nn::ConfusionCell> cellsOf(uint classes) {
  kj::Vector<nn::ConfusionCell> cells;
  for (uint i = 0; i < classes; i++) {
    uint right = i % 11, next = (i + 1) % classes;
    auto add = [&](uint predicted, uint64_t images) {
      if (images > 0) cells.add(nn::ConfusionCell{i, predicted, images});
    };
    if (next < i) add(next, 10 - right);
    add(i, right);
    if (next > i) add(next, 10 - right);
  }
  return cells.releaseAsArray();
}

TEST_CASE(
    "classReport: lists the worst class first, and what each class was taken for most often") {
  auto page = classReport({{0, 0, 8}, {0, 1, 1}, {0, 2, 1}, {2, 0, 3}, {2, 1, 4}, {2, 2, 3}});
  CHECK(contains(page, "20 images of 2 classes, the worst class first."));
  CHECK(contains(page,
      "<tbody>\n<tr><td class=\"n\">2</td><td class=\"n\">10</td><td class=\"n\">3</td><td "
      "class=\"n\">0.3000</td><td>1 (4)</td></tr>\n<tr><td class=\"n\">0</td><td "
      "class=\"n\">10</td><td class=\"n\">8</td><td class=\"n\">0.8000</td><td>1 (1)</td></tr>\n"));
  CHECK_FALSE(contains(page, "other class"));
  CHECK(classReport(nullptr) == "");
}

TEST_CASE("classReport: shows the names of the classes as far as they are known") {
  auto names = kj::arr(kj::str("cat & co"), kj::str());
  auto page = classReport({{0, 0, 8}, {0, 1, 2}, {1, 0, 1}, {2, 1, 3}}, names);
  CHECK(contains(page, "<td>cat &amp; co</td>"));
  CHECK(contains(page, "<title>cat &amp; co taken for 1: 2 images, 20.0 %</title>"));
  CHECK(contains(page, "<title>2 taken for 1: 3 images, 100.0 %</title>"));
}

TEST_CASE("classReport: up to 100 classes have a heat map, with one square per cell") {
  auto page = classReport({{0, 0, 8}, {0, 2, 2}, {2, 2, 5}});
  CHECK(countOf(page, "<rect ") == 3);
  CHECK(countOf(page, "<rect class=\"wrong\"") == 1);
  // The opacity is the square root of the share, which is 0.2.
  CHECK(contains(page, "fill-opacity=\"0.45\"><title>0 taken for 2: 2 images, 20.0 %</title>"));
  CHECK(contains(page, "<title>2 recognized: 5 images, 100.0 %</title>"));
  // Three names at each side, and three numbers of images.
  CHECK(countOf(page, "<text ") == 9);

  auto cells = cellsOf(100);
  auto large = classReport(cells);
  CHECK(countOf(large, "<rect ") == cells.size());
  // No room for numbers, and only for some names.
  CHECK_FALSE(contains(large, "<text class="));
  CHECK(countOf(large, "<text ") > 20);
  CHECK(countOf(large, "<text ") < 100);
}

TEST_CASE("classReport: of many classes, shows 50, counts the others and lists the confusions") {
  auto page = classReport(cellsOf(120));
  CHECK_FALSE(contains(page, "<svg"));
  // Classes 0, 11, … are never recognized. The table ends with the last class of accuracy 0.4.
  CHECK(contains(page,
      "The table leaves out 70 of 120 classes, with accuracies from 0.4000 to 1.0000. "
      "The CSV file of the confusion matrix has all."));
  CHECK(contains(page,
      "<td class=\"n\">110</td><td class=\"n\">111</td><td class=\"n\">10</td><td "
      "class=\"n\">1.0000</td>"));
  CHECK(contains(page,
      "The 50 most frequent of 110 confusions. The CSV file of the confusion matrix has all."));
}

TEST_CASE("classReport: a class without images has no row, and one without mistakes no confusion") {
  auto page = classReport({{5, 5, 4}});
  CHECK(contains(page, "<td class=\"n\">1.0000</td><td></td></tr>"));
  CHECK(countOf(page, "<tr>") == 2);
  CHECK(contains(page, "4 images of 1 class, the worst"));
}

}  // namespace
}  // namespace runner
