#include "runner/report/heat_map.h"

#include <kj/debug.h>
#include <kj/vector.h>

#include <cmath>

#include "configs/language/display_width.h"
#include "runner/text/fitted_text.h"
#include "runner/text/html.h"
#include "runner/text/numbers.h"

namespace runner {

using configs::columnsOf;

namespace {

constexpr double WIDTH = 420, LETTER = 6.2, GAP = 5, MARGIN = 4;

// Longer names would leave too little room for the cells.
constexpr uint NAME_COLUMNS_MAX = 14;

// A row of names needs this height, a number in a cell this width per letter.
constexpr double NAME_HEIGHT = 13, NUMBER_LETTER = 7;

kj::String number(double value) {
  return fixedPoint(value, 2);
}

// Returns the sum of each row.
kj::Array<uint64_t> rowSums(kj::ArrayPtr<const nn::ConfusionCell> cells, size_t classes) {
  auto sums = kj::heapArray<uint64_t>(classes);
  for (auto& sum: sums) sum = 0;
  for (auto& cell: cells) {
    KJ_REQUIRE(cell.label < classes && cell.predicted < classes, "a cell without a name");
    sums[cell.label] += cell.images;
  }
  return sums;
}

// The position of the squares: their left and upper edge, and the side of a square.
struct Grid {
  double edge;
  double side;
};

kj::String drawCell(const nn::ConfusionCell& cell, double share, const Grid& grid,
    kj::ArrayPtr<const kj::String> names, bool hasNumber) {
  // Numbers on a darker colour are written in the colour of the page.
  constexpr double STRONG = 0.6;
  double opacity = std::sqrt(share);
  bool isRight = cell.label == cell.predicted;
  auto x = grid.edge + cell.predicted * grid.side, y = grid.edge + cell.label * grid.side;
  auto words = isRight ? kj::str(names[cell.label], " recognized")
                       : kj::str(names[cell.label], " taken for ", names[cell.predicted]);
  auto square = kj::str("<rect class=\"", isRight ? "right" : "wrong", "\" x=\"", number(x),
      "\" y=\"", number(y), "\" width=\"", number(grid.side), "\" height=\"", number(grid.side),
      "\" fill-opacity=\"", number(opacity), "\"><title>", escaped(words), ": ",
      counted(cell.images, "image"), ", ", fixedPoint(100 * share, 1), " %</title></rect>");
  if (!hasNumber) return square;
  return kj::str(square, "\n<text class=\"", opacity > STRONG ? "strong" : "weak", "\" x=\"",
      number(x + grid.side / 2), "\" y=\"", number(y + grid.side / 2 + 4),
      "\" text-anchor=\"middle\">", cell.images, "</text>");
}

// Draws the names at the left and above. If there is no room for all of them, draws every second
// one, or every third one, and so on. `width` is the width of the longest name.
kj::String drawNames(kj::ArrayPtr<const kj::String> names, const Grid& grid, double width) {
  size_t every = size_t(std::ceil(NAME_HEIGHT / grid.side));
  bool isRotated = width + GAP > every * grid.side;
  auto end = number(grid.edge - GAP);
  kj::Vector<kj::String> parts;
  for (size_t i = 0; i < names.size(); i += every) {
    double middle = grid.edge + (i + 0.5) * grid.side;
    auto name = escaped(names[i]);
    parts.add(kj::str("<text x=\"", end, "\" y=\"", number(middle + 4), "\" text-anchor=\"end\">",
        name, "</text>"));
    auto place =
        isRotated
            ? kj::str("transform=\"translate(", number(middle + 4), " ", end, ") rotate(-90)\"")
            : kj::str("x=\"", number(middle), "\" y=\"", end, "\" text-anchor=\"middle\"");
    parts.add(kj::str("<text ", place, ">", name, "</text>"));
  }
  return kj::strArray(parts, "\n");
}

}  // namespace

kj::String drawHeatMap(
    kj::ArrayPtr<const nn::ConfusionCell> cells, kj::ArrayPtr<const kj::String> names) {
  auto sums = rowSums(cells, names.size());
  uint columns = 1;
  auto shown = KJ_MAP(name, names) {
    auto text = shortenedName(name, NAME_COLUMNS_MAX);
    columns = kj::max(columns, columnsOf(text));
    return text;
  };
  Grid grid{MARGIN + columns * LETTER + GAP, 0};
  grid.side = (WIDTH - grid.edge - MARGIN) / names.size();
  uint64_t most = 0;
  for (auto& cell: cells) most = kj::max(most, cell.images);
  bool hasNumbers = kj::str(most).size() * NUMBER_LETTER + 2 < grid.side;
  auto squares = KJ_MAP(cell, cells) {
    return drawCell(cell, double(cell.images) / sums[cell.label], grid, names, hasNumbers);
  };
  auto begin = number(grid.edge), end = number(WIDTH - MARGIN);
  return kj::str("<svg viewBox=\"0 0 ", WIDTH, " ", WIDTH,
      "\" role=\"img\" aria-label=\"Confusion matrix\">\n", kj::strArray(squares, "\n"), "\n",
      drawNames(shown, grid, columns * LETTER), "\n<path class=\"axis\" d=\"M", begin, " ", begin,
      "H", end, "V", end, "H", begin, "Z\"/>\n</svg>\n");
}

}  // namespace runner
