#include "runner/report/svg_chart.h"

#include <kj/debug.h>
#include <kj/vector.h>

#include <cmath>

#include "configs/language/display_width.h"
#include "runner/text/html.h"
#include "runner/text/numbers.h"

namespace runner {

using configs::columnsOf;
using configs::glyphsOf;

namespace {

constexpr double WIDTH = 420, HEIGHT = 240;
constexpr double LEFT = 46, RIGHT = 408, TOP = 10, BOTTOM = 204;

// More marks would hide the line.
constexpr size_t MARKS_MAX = 12;

constexpr kj::StringPtr DASHES[] = {""_kj, "6 3"_kj, "2 2.5"_kj, "8 3 2 3"_kj, "12 3"_kj};

kj::String number(double value) {
  return fixedPoint(value, 1);
}

// Returns the mark of a look, with radius r around (x, y), as a path's data. There are six shapes.
kj::String markPath(uint look, double x, double y, double r) {
  auto n = [](double value) { return number(value); };
  switch (look % 6) {
    case 0:  // circle
      return kj::str("M", n(x - r), " ", n(y), "a", n(r), " ", n(r), " 0 1 0 ", n(2 * r), " 0a",
          n(r), " ", n(r), " 0 1 0 ", n(-2 * r), " 0Z");
    case 1:  // square
      return kj::str(
          "M", n(x - r), " ", n(y - r), "h", n(2 * r), "v", n(2 * r), "h", n(-2 * r), "Z");
    case 2:  // triangle
      return kj::str(
          "M", n(x), " ", n(y - 1.2 * r), "l", n(1.2 * r), " ", n(2.2 * r), "h", n(-2.4 * r), "Z");
    case 3:  // diamond
      return kj::str("M", n(x), " ", n(y - 1.4 * r), "L", n(x + 1.4 * r), " ", n(y), "L", n(x), " ",
          n(y + 1.4 * r), "L", n(x - 1.4 * r), " ", n(y), "Z");
    case 4:  // triangle upside down
      return kj::str(
          "M", n(x), " ", n(y + 1.2 * r), "l", n(1.2 * r), " ", n(-2.2 * r), "h", n(-2.4 * r), "Z");
    default:  // bar
      return kj::str("M", n(x - 1.4 * r), " ", n(y - 0.6 * r), "h", n(2.8 * r), "v", n(1.2 * r),
          "h", n(-2.8 * r), "Z");
  }
}

kj::String mark(const Series& series, double x, double y, kj::StringPtr title) {
  bool hollow = series.shape == Series::MARKS;
  auto path = markPath(series.look, x, y, hollow ? 4.5 : 2.6);
  auto inner = title.size() == 0 ? kj::str() : kj::str("<title>", escaped(title), "</title>");
  return kj::str(
      "<path class=\"", hollow ? "hollow" : "mark", "\" d=\"", path, "\">", inner, "</path>");
}

kj::String dashOf(const Series& series) {
  auto dash = DASHES[series.look % kj::size(DASHES)];
  return dash.size() == 0 ? kj::str() : kj::str(" stroke-dasharray=\"", dash, "\"");
}

// The plane on which values are drawn.
struct Plane {
  Axis x;
  Axis y;

  double right(double value) const { return LEFT + edge(x.at(value)) * (RIGHT - LEFT); }
  double down(double value) const { return BOTTOM - edge(y.at(value)) * (BOTTOM - TOP); }

  static double edge(double share) { return kj::max(0.0, kj::min(1.0, share)); }

  static bool draws(const Point& point) { return std::isfinite(point.x) && std::isfinite(point.y); }
};

Plane planeOf(const Chart& chart) {
  kj::Vector<double> x, y;
  for (auto& series: chart.series) {
    for (auto& point: series.points) {
      if (!Plane::draws(point)) continue;
      x.add(point.x);
      y.add(point.y);
    }
  }
  return {axisOver(x, chart.x), axisOver(y, chart.y)};
}

kj::String drawAxes(const Chart& chart, const Plane& plane) {
  kj::Vector<kj::String> parts;
  for (double tick: plane.y.ticks) {
    auto y = number(plane.down(tick));
    parts.add(kj::str("<path class=\"grid\" d=\"M", number(LEFT), " ", y, "H", number(RIGHT),
        "\"/><text x=\"", number(LEFT - 6), "\" y=\"", number(plane.down(tick) + 3.5),
        "\" text-anchor=\"end\">", plane.y.label(tick), "</text>"));
  }
  for (double tick: plane.x.ticks) {
    auto x = number(plane.right(tick));
    parts.add(kj::str("<path class=\"axis\" d=\"M", x, " ", number(BOTTOM), "v4\"/><text x=\"", x,
        "\" y=\"", number(BOTTOM + 15), "\" text-anchor=\"middle\">", plane.x.label(tick),
        "</text>"));
  }
  parts.add(kj::str("<path class=\"axis\" d=\"M", number(LEFT), " ", number(TOP), "V",
      number(BOTTOM), "H", number(RIGHT), "\"/><text x=\"", number((LEFT + RIGHT) / 2), "\" y=\"",
      number(HEIGHT - 6), "\" text-anchor=\"middle\">", escaped(chart.xLabel), "</text>"));
  return kj::strArray(parts, "\n");
}

kj::String drawSeries(const Series& series, const Plane& plane) {
  kj::Vector<kj::String> line, marks;
  size_t every = (series.points.size() + MARKS_MAX - 1) / MARKS_MAX;
  bool joined = false;
  for (size_t i: kj::indices(series.points)) {
    auto& point = series.points[i];
    if (!Plane::draws(point)) {
      joined = false;
      continue;
    }
    double x = plane.right(point.x), y = plane.down(point.y);
    line.add(kj::str(joined ? "L" : "M", number(x), " ", number(y)));
    joined = true;
    // The last point always has its mark.
    if (series.shape == Series::MARKS || (series.points.size() - 1 - i) % every == 0) {
      marks.add(mark(series, x, y,
          kj::str(series.name, ": ", figureText(point.y, 4), " at ", plane.x.label(point.x))));
    }
  }
  auto path = series.shape == Series::MARKS || line.size() < 2
                  ? kj::str()
                  : kj::str("<path class=\"line\"", dashOf(series), " d=\"", kj::strArray(line, ""),
                        "\"/>");
  return kj::str(
      "<g class=\"c", series.look % COLOURS, "\">", path, kj::strArray(marks, ""), "</g>");
}

// Breaks `text` into lines of at most `columns`, after a comma or a space if there is one.
kj::Vector<kj::String> brokenInto(kj::StringPtr text, uint columns) {
  kj::Vector<kj::String> lines;
  while (columnsOf(text) > columns) {
    size_t end = 0, best = 0;
    uint used = 0;
    for (auto& glyph: glyphsOf(text)) {
      used += glyph.columns;
      if (used > columns) break;
      end += glyph.bytes.size();
      if (glyph.bytes[0] == ',' || glyph.bytes[0] == ' ') best = end;
    }
    if (best == 0) best = end;
    lines.add(kj::heapString(text.slice(0, best)));
    text = text.slice(best);
  }
  lines.add(kj::str(text));
  return lines;
}

}  // namespace

kj::String drawChart(const Chart& chart) {
  auto plane = planeOf(chart);
  auto series = KJ_MAP(each, chart.series) {
    return drawSeries(each, plane);
  };
  return kj::str("<svg viewBox=\"0 0 ", WIDTH, " ", HEIGHT, "\" role=\"img\" aria-label=\"",
      escaped(chart.title), "\">\n", drawAxes(chart, plane), "\n", kj::strArray(series, "\n"),
      "\n</svg>\n");
}

kj::String drawLegend(kj::ArrayPtr<const Series> series) {
  auto items = KJ_MAP(each, series) {
    auto line = each.shape == Series::MARKS
                    ? kj::str()
                    : kj::str("<path class=\"line\"", dashOf(each), " d=\"M1 7H33\"/>");
    return kj::str("<li><svg class=\"c", each.look % COLOURS,
        "\" viewBox=\"0 0 34 14\" width=\"34\" height=\"14\" aria-hidden=\"true\">", line,
        mark(each, 17, 7, ""), "</svg>", escaped(each.name), "</li>\n");
  };
  return kj::str("<ul class=\"legend\">\n", kj::strArray(items, ""), "</ul>\n");
}

kj::String drawBars(
    kj::ArrayPtr<const Bar> bars, kj::ArrayPtr<const kj::StringPtr> parts, kj::StringPtr unit) {
  // LETTER is a letter's mean width in the widest font that the style sheet asks for.
  constexpr double ROW = 42, LINE = 14, BAR = 20, LETTER = 7.2;
  double longest = 0;
  for (auto& bar: bars) {
    double sum = 0;
    for (double part: bar.parts) sum += std::isfinite(part) ? part : 0;
    longest = kj::max(longest, sum);
  }
  kj::Vector<kj::String> rows;
  double top = 0;
  for (auto& bar: bars) {
    KJ_REQUIRE(bar.parts.size() == parts.size(), "a bar has a part for each name");
    double x = 0, sum = 0;
    for (double part: bar.parts) sum += std::isfinite(part) ? part : 0;
    auto name = kj::str(bar.name, ": ", figureText(sum, 2), " ", unit);
    auto lines = brokenInto(name, uint(WIDTH / LETTER));
    for (auto& line: lines) {
      rows.add(kj::str("<text x=\"0\" y=\"", number(top + 11), "\">", escaped(line), "</text>"));
      top += LINE;
    }
    top -= LINE;  // the last line is part of the bar's row
    for (size_t p: kj::indices(parts)) {
      if (longest == 0 || !std::isfinite(bar.parts[p])) continue;
      double width = bar.parts[p] / longest * WIDTH;
      auto words = kj::str(parts[p], " ", figureText(bar.parts[p], 2));
      rows.add(kj::str("<rect class=\"p", p, "\" x=\"", number(x), "\" y=\"", number(top + 16),
          "\" width=\"", number(width), "\" height=\"", BAR, "\"><title>", escaped(words), " ",
          unit, "</title></rect>"));
      // The value is shown too if there is room.
      kj::StringPtr shown = width > words.size() * LETTER + 4 ? kj::StringPtr(words) : parts[p];
      if (width > shown.size() * LETTER + 4) {
        rows.add(kj::str("<text class=\"on", p, "\" x=\"", number(x + width / 2), "\" y=\"",
            number(top + 30), "\" text-anchor=\"middle\">", escaped(shown), "</text>"));
      }
      x += width;
    }
    top += ROW;
  }
  return kj::str("<svg class=\"bars\" viewBox=\"0 0 ", WIDTH, " ", number(kj::max(ROW, top)),
      "\" role=\"img\">\n", kj::strArray(rows, "\n"), "\n</svg>\n");
}

}  // namespace runner
