#include "runner/report/svg_chart.h"

#include <doctest/doctest.h>
#include <kj/vector.h>

#include <cmath>

namespace runner {
namespace {

Series series(kj::StringPtr name, kj::ArrayPtr<const Point> points, uint look = 0,
    Series::Shape shape = Series::LINE) {
  return Series{kj::str(name), kj::heapArray(points), look, shape};
}

kj::String draw(Series one) {
  Chart chart{kj::str("cost"), "epoch", {.whole = true}, {.rounded = true}, nullptr};
  auto all = kj::heapArrayBuilder<Series>(1);
  all.add(kj::mv(one));
  chart.series = all.finish();
  return drawChart(chart);
}

uint countOf(kj::StringPtr text, kj::StringPtr part) {
  uint count = 0;
  for (size_t i = 0; i + part.size() <= text.size(); ++i) count += text.slice(i).startsWith(part);
  return count;
}

TEST_CASE("drawChart: the smallest value is on the axis, the largest at the top") {
  auto text = draw(series("train", {{1, 0.2}, {2, 0.6}}));
  CHECK(countOf(text, "d=\"M46.0 204.0L408.0 10.0\"") == 1);
  CHECK(countOf(text, "class=\"mark\"") == 2);
  CHECK(countOf(text, "train: 0.6000 at 2") == 1);
  CHECK(countOf(text, ">epoch</text>") == 1);
}

TEST_CASE("drawChart: one point is a mark without a line, and nan and infinite values are gaps") {
  auto one = draw(series("a", {{1, 0.5}}));
  CHECK(countOf(one, "class=\"line\"") == 0);
  CHECK(countOf(one, "class=\"mark\"") == 1);

  auto gap = draw(series("a", {{1, 0}, {2, 1}, {3, std::nan("")}, {4, HUGE_VAL}, {5, 1}, {6, 0}}));
  CHECK(countOf(gap, "class=\"mark\"") == 4);
  CHECK(countOf(gap, "L") == 2);
  CHECK(countOf(gap, "nan") == 0);
  CHECK(countOf(gap, "inf") == 0);

  CHECK(countOf(draw(series("a", nullptr)), "class=\"mark\"") == 0);
}

TEST_CASE("drawChart: lines differ even without colours, and published figures are hollow marks") {
  auto first = draw(series("a", {{1, 0}, {2, 1}}, 0));
  auto second = draw(series("a", {{1, 0}, {2, 1}}, 1));
  CHECK(countOf(first, "stroke-dasharray") == 0);
  CHECK(countOf(second, "stroke-dasharray") == 1);
  auto published = draw(series("a", {{1, 0}, {2, 1}}, 0, Series::MARKS));
  CHECK(countOf(published, "class=\"line\"") == 0);
  CHECK(countOf(published, "class=\"hollow\"") == 2);
}

TEST_CASE("drawChart: a long line has few marks, including one on its last point") {
  kj::Vector<Point> points;
  for (int i = 0; i < 1000; i++) points.add(Point{double(i), double(i)});
  auto text = draw(series("a", points));
  CHECK(countOf(text, "class=\"mark\"") <= 12);
  CHECK(countOf(text, "a: 999.0000") == 1);
}

TEST_CASE("drawLegend: escapes names") {
  Series all[] = {series("a<b>&\"c\"", nullptr)};
  auto text = drawLegend(all);
  CHECK(countOf(text, "a&lt;b&gt;&amp;&quot;c&quot;") == 1);
  CHECK(countOf(text, "<b>") == 0);
}

TEST_CASE("drawBars: a part shows its name, and its value, only if there is room") {
  kj::StringPtr parts[] = {"forward"_kj, "backward"_kj};
  // In a bar of 420 units, a part of 54 has no room for `forward` in a wide font, and one of 55
  // has.
  auto bar = [&](double width) {
    return drawBars(kj::arr(Bar{kj::str("1"), kj::arr(width, 420 - width)}), parts, "ms");
  };
  CHECK(countOf(bar(54), ">forward</text>") == 0);
  CHECK(countOf(bar(55), ">forward</text>") == 1);
  CHECK(countOf(bar(90), ">forward</text>") == 1);
  CHECK(countOf(bar(110), ">forward 110.00</text>") == 1);
}

TEST_CASE(
    "drawBars: a name that is too long takes several lines, and keeps its distinguishing end") {
  kj::StringPtr parts[] = {"read"_kj};
  auto start = kj::strArray(kj::repeat("batch_size=128"_kj, 4), ",");
  auto bars = kj::heapArrayBuilder<Bar>(2);
  bars.add(Bar{kj::str(start, ",seed=1"), kj::arr(3.0)});
  bars.add(Bar{kj::str(start, ",seed=2"), kj::arr(3.0)});
  auto text = drawBars(bars, parts, "ms");
  CHECK(countOf(text, ">batch_size=128,batch_size=128,batch_size=128,</text>") == 2);
  CHECK(countOf(text, ">batch_size=128,seed=1: 3.00 ms</text>") == 1);
  CHECK(countOf(text, ">batch_size=128,seed=2: 3.00 ms</text>") == 1);
  // The second bar begins below the two lines and the bar of the first.
  CHECK(countOf(text, "y=\"30.0\" width") == 1);
  CHECK(countOf(text, "y=\"86.0\" width") == 1);
  CHECK(countOf(text, "viewBox=\"0 0 420 112.0\"") == 1);
}

TEST_CASE("drawBars: the longest bar fills the width, and parts are side by side") {
  kj::StringPtr parts[] = {"read"_kj, "push"_kj};
  auto bars = kj::heapArrayBuilder<Bar>(2);
  bars.add(Bar{kj::str("1"), kj::arr(1.0, 3.0)});
  bars.add(Bar{kj::str("2"), kj::arr(1.0, 1.0)});
  auto text = drawBars(bars, parts, "ms");
  CHECK(countOf(text, "x=\"0.0\" y=\"16.0\" width=\"105.0\"") == 1);
  CHECK(countOf(text, "x=\"105.0\" y=\"16.0\" width=\"315.0\"") == 1);
  CHECK(countOf(text, ">1: 4.00 ms<") == 1);
  CHECK(countOf(drawBars(nullptr, parts, "ms"), "<rect") == 0);
}

}  // namespace
}  // namespace runner
