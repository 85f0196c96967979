// runner/report/svg_chart.h: charts as inline SVG. The same data give the same text; colours are
// classes, which a page's style sheet defines.
#pragma once

#include <kj/array.h>
#include <kj/string.h>

#include "runner/report/chart_axis.h"

namespace runner {

struct Point {
  double x;
  double y;  // what is not finite is a gap
};

// How series are told apart: each look has a dash pattern and a mark of its own besides its colour.
// Class `c<n>` of n below COLOURS says the colour, as CSS's `color`.
constexpr kj::uint COLOURS = 8;

struct Series {
  kj::String name;
  kj::Array<Point> points;
  kj::uint look = 0;
  enum Shape {
    LINE,   // joined, with filled marks where there is room
    MARKS,  // hollow marks alone: what others published
  } shape = LINE;
};

struct Chart {
  kj::String title;
  kj::StringPtr xLabel;
  AxisOptions x;
  AxisOptions y;
  kj::Array<Series> series;
};

// An `<svg>` element of 420 × 240 units, which grows and shrinks with its box.
kj::String drawChart(const Chart& chart);

// A `<ul class="legend">`: each series' name behind a small piece of it.
kj::String drawLegend(kj::ArrayPtr<const Series> series);

// A whole cut in parts, drawn as a row of a stacked bar chart.
struct Bar {
  kj::String name;          // takes several lines if it is long
  kj::Array<double> parts;  // none negative
};

// Horizontal bars under each other, all in one scale, as `<svg>` of 420 units' width. Part i has
// class `p<i>`, and its name in it where it is wide enough, with its value where both fit. `unit`
// follows the values.
kj::String drawBars(
    kj::ArrayPtr<const Bar> bars, kj::ArrayPtr<const kj::StringPtr> parts, kj::StringPtr unit);

}  // namespace runner
