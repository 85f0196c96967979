// runner/report/svg_chart.h: draws charts as inline SVG. The same data give the same text. Colours
// are classes, which the page's style sheet defines.
#pragma once

#include <kj/array.h>
#include <kj/string.h>

#include "runner/report/chart_axis.h"

namespace runner {

struct Point {
  double x;
  double y;  // values that are not finite leave a gap
};

// Each look has its own dash pattern and mark, besides its colour. Class `c<n>`, with n below
// COLOURS, sets CSS's `color`.
constexpr kj::uint COLOURS = 8;

// A line or a group of marks. `look` chooses colour, dash pattern and mark.
struct Series {
  kj::String name;
  kj::Array<Point> points;
  kj::uint look = 0;
  enum Shape {
    LINE,   // a line, with filled marks if there is room
    MARKS,  // hollow marks only: figures that others published
  } shape = LINE;
};

struct Chart {
  kj::String title;
  kj::StringPtr xLabel;
  AxisOptions x;
  AxisOptions y;
  kj::Array<Series> series;
};

// Returns an `<svg>` element of 420 × 240 units, which grows and shrinks with its box.
kj::String drawChart(const Chart& chart);

// Returns a `<ul class="legend">` with each series' name after a small piece of its line.
kj::String drawLegend(kj::ArrayPtr<const Series> series);

// A row of a stacked bar chart.
struct Bar {
  kj::String name;          // takes several lines if it is long
  kj::Array<double> parts;  // none negative
};

// Returns horizontal bars, one below the other, in the same scale, as an `<svg>` 420 units wide.
// Part i has class `p<i>`. It shows its name if there is room, and also its value if both fit.
// `unit` follows the values.
kj::String drawBars(
    kj::ArrayPtr<const Bar> bars, kj::ArrayPtr<const kj::StringPtr> parts, kj::StringPtr unit);

}  // namespace runner
