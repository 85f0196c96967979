// runner/report/heat_map.h: draws a confusion matrix as inline SVG. The same data give the same
// text. Colours are classes, which the page's style sheet defines.
#pragma once

#include <kj/array.h>
#include <kj/string.h>

#include "nn/confusion.h"

namespace runner {

using kj::uint;

// Returns an `<svg>` element that grows and shrinks with its box: one row per label, one column per
// prediction. `names` are those of the classes, each once. `cells` are those that have images.
// Cells on the diagonal have class `right`, others `wrong`. The strength of a cell's colour is the
// square root of the cell's share of its row, so that rare confusions are visible too. A cell shows
// its number of images if there is room. Its title always says it in words.
kj::String drawHeatMap(
    kj::ArrayPtr<const nn::ConfusionCell> cells, kj::ArrayPtr<const kj::String> names);

}  // namespace runner
