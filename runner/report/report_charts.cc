#include "runner/report/report_charts.h"

#include <kj/debug.h>
#include <kj/map.h>
#include <kj/vector.h>

#include <algorithm>

#include "runner/tables/run_tables.h"

namespace runner {

namespace {

// How many points of a line a chart of 420 units can show. Each is a mean, because figures of
// batches and speeds jump.
constexpr size_t POINTS_MAX = 40;

// A chart is at most this many times as high as the largest loss of the best run. A run that
// diverged would press all other curves onto the axis.
constexpr double DIVERGED = 4;

// One figure of a run that a chart shows, of training or of validation.
struct Figure {
  kj::StringPtr chart;      // its title in a chart of its own
  kj::StringPtr series;     // its name in the chart of a single run
  kj::StringPtr published;  // its name in Comparison; empty if it is never published
  kj::Maybe<double> (*ofEpoch)(const EpochRecord&);
  double (*ofBatch)(const SpeedRecord&);  // null for validation
};

constexpr Figure ACCURACIES[] = {
    {"Validation accuracy"_kj, "validation"_kj, "validation accuracy"_kj,
        [](const EpochRecord& e) { return e.validationAccuracy; }, nullptr},
    {"Training accuracy"_kj, "training"_kj, "train accuracy"_kj,
        [](const EpochRecord& e) { return kj::Maybe<double>(e.trainAccuracy); },
        [](const SpeedRecord& s) { return s.batchAccuracy; }},
};

constexpr Figure LOSSES[] = {
    {"Validation loss"_kj, "validation"_kj, ""_kj,
        [](const EpochRecord& e) { return e.validationLoss; }, nullptr},
    {"Training loss"_kj, "training"_kj, "train loss"_kj,
        [](const EpochRecord& e) { return kj::Maybe<double>(e.trainLoss); },
        [](const SpeedRecord& s) { return s.batchLoss; }},
};

void sortByX(kj::Vector<Point>& points) {
  std::stable_sort(
      points.begin(), points.end(), [](const Point& a, const Point& b) { return a.x < b.x; });
}

double xOf(const EpochRecord& epoch, bool bySteps) {
  return bySteps ? double(epoch.globalStep) : double(epoch.epoch);
}

kj::StringPtr xLabelOf(bool bySteps) {
  return bySteps ? "update of the job"_kj : "epoch"_kj;
}

kj::Array<Point> curve(const RunRecord& record, const Figure& figure, bool bySteps) {
  kj::Vector<Point> points;
  if (bySteps && figure.ofBatch != nullptr) {
    for (auto& speed: record.speeds) {
      points.add(Point{double(speed.globalStep), figure.ofBatch(speed)});
    }
    sortByX(points);
    return thinned(points, POINTS_MAX);
  }
  for (auto& epoch: record.epochRecords) {
    KJ_IF_MAYBE(value, figure.ofEpoch(epoch)) {
      points.add(Point{xOf(epoch, bySteps), *value});
    }
  }
  return points.releaseAsArray();
}

kj::Array<Point> publishedPoints(const ReportedRun& run, const Figure& figure, bool bySteps) {
  kj::Vector<Point> points;
  for (auto& each: compare(run)) {
    if (each.figure != figure.published) continue;
    if (bySteps && each.step > 0) {
      points.add(Point{double(each.step), each.published});
    } else if (!bySteps) {
      KJ_IF_MAYBE(epoch, each.epoch) points.add(Point{double(*epoch), each.published});
    }
  }
  return points.releaseAsArray();
}

void addSeries(kj::Vector<Series>& all, kj::StringPtr name, uint look, kj::Array<Point> points,
    Series::Shape shape) {
  if (points.size() > 0) all.add(Series{kj::str(name), kj::mv(points), look, shape});
}

// Adds marks of published figures that no other run shows already. Often all runs have the same
// published figures.
void addMarks(kj::Vector<Series>& all, kj::StringPtr name, uint look, kj::Array<Point> points) {
  kj::Vector<Point> fresh;
  for (auto& point: points) {
    bool shown = false;
    for (auto& series: all) {
      if (series.shape != Series::MARKS) continue;
      for (auto& other: series.points) shown |= other.x == point.x && other.y == point.y;
    }
    if (!shown) fresh.add(point);
  }
  addSeries(all, kj::str(name, ", published"), look, fresh.releaseAsArray(), Series::MARKS);
}

// Returns the largest loss that a chart shows: see DIVERGED.
double highestLoss(kj::ArrayPtr<const Series> all) {
  double lowest = kj::inf(), highest = CHART_VALUE_MAX;
  for (auto& series: all) {
    if (series.shape != Series::LINE) continue;
    double least = kj::inf(), most = 0;
    for (auto& point: series.points) {
      if (point.y < least) least = point.y;
      if (point.y > most) most = point.y;
    }
    if (least >= lowest || most == 0) continue;
    lowest = least;
    highest = most * DIVERGED;
  }
  return highest;
}

// Adds the series of `figure` of one run.
void addFigure(kj::Vector<Series>& all, const ReportedRun& run, const Figure& figure,
    kj::StringPtr name, uint look, bool bySteps) {
  addSeries(all, name, look, curve(run.record, figure, bySteps), Series::LINE);
  addMarks(all, name, look, publishedPoints(run, figure, bySteps));
}

// How a chart treats values far from those of the best run.
enum class Far { SHOWN, CUT_OFF };

void addCharts(kj::Vector<Chart>& charts, kj::ArrayPtr<const ReportedRun> runs,
    kj::ArrayPtr<const Figure> figures, kj::StringPtr title, bool bySteps, Far far) {
  AxisOptions x{.whole = true};
  AxisOptions y{.rounded = true};
  auto add = [&](kj::StringPtr name, kj::Vector<Series>& series) {
    if (series.empty()) return;
    if (far == Far::CUT_OFF && runs.size() > 1) y.atMost = highestLoss(series);
    bool cut = false;
    for (auto& each: series) {
      for (auto& point: each.points) cut = cut || point.y > y.atMost;
    }
    auto title = kj::str(name, cut ? " (cut off above)" : "");
    charts.add(Chart{kj::mv(title), xLabelOf(bySteps), x, y, series.releaseAsArray()});
  };
  if (runs.size() == 1) {
    kj::Vector<Series> series;
    for (uint i: kj::indices(figures)) {
      // Figures of training may jump from batch to batch, so they get the look without dashes.
      uint look = figures.size() - 1 - i;
      addFigure(series, runs[0], figures[i], figures[i].series, look, bySteps);
    }
    return add(title, series);
  }
  for (auto& figure: figures) {
    kj::Vector<Series> series;
    for (uint i: kj::indices(runs)) addFigure(series, runs[i], figure, runs[i].label, i, bySteps);
    add(figure.chart, series);
  }
}

// Adds one chart per log.top_k of the runs, with a line per run that has it.
void addTopKCharts(kj::Vector<Chart>& charts, kj::ArrayPtr<const ReportedRun> runs, bool bySteps) {
  for (uint k: topKsOf(runs)) {
    kj::Vector<Series> series;
    for (uint i: kj::indices(runs)) {
      kj::Vector<Point> points;
      for (auto& epoch: runs[i].record.epochRecords) {
        KJ_IF_MAYBE(accuracy, epoch.topKAccuracy(k)) {
          points.add(Point{xOf(epoch, bySteps), *accuracy});
        }
      }
      auto name = runs.size() == 1 ? "validation"_kj : kj::StringPtr(runs[i].label);
      addSeries(series, name, i, points.releaseAsArray(), Series::LINE);
    }
    if (series.empty()) continue;
    charts.add(Chart{kj::str("Validation top-", k, " accuracy"), xLabelOf(bySteps), {.whole = true},
        {.rounded = true}, series.releaseAsArray()});
  }
}

// Returns the sum of the workers' latest rates, with one point each time that all workers have
// reported a new rate. Workers report at about the same time, so a sum of old and new rates would
// be a speed that the job never had.
kj::Array<Point> jobSpeed(const RunRecord& record) {
  kj::Vector<const SpeedRecord*> speeds;
  for (auto& speed: record.speeds) {
    if (speed.training_s > 0) speeds.add(&speed);
  }
  std::stable_sort(
      speeds.begin(), speeds.end(), [](auto* a, auto* b) { return a->training_s < b->training_s; });
  kj::TreeMap<uint, double> latest;
  kj::HashSet<uint> renewed;
  kj::Vector<Point> points;
  for (auto* speed: speeds) {
    latest.upsert(speed->worker, speed->images_per_s, [](double& old, double rate) { old = rate; });
    if (!renewed.contains(speed->worker)) renewed.insert(speed->worker);
    if (renewed.size() < speed->workers) continue;
    double sum = 0;
    for (auto& entry: latest) sum += renewed.contains(entry.key) ? entry.value : 0;
    renewed.clear();
    points.add(Point{speed->training_s, sum});
  }
  return thinned(points, POINTS_MAX);
}

}  // namespace

kj::Array<Point> thinned(kj::ArrayPtr<const Point> points, size_t most) {
  size_t groups = kj::min(most, points.size());
  auto result = kj::heapArrayBuilder<Point>(groups);
  for (size_t g = 0; g < groups; g++) {
    auto group = points.slice(g * points.size() / groups, (g + 1) * points.size() / groups);
    Point sum{0, 0};
    for (auto& point: group) {
      sum.x += point.x;
      sum.y += point.y;
    }
    result.add(Point{sum.x / group.size(), sum.y / group.size()});
  }
  return result.finish();
}

kj::Array<Chart> chartsOf(kj::ArrayPtr<const ReportedRun> runs) {
  bool bySteps = true;
  for (auto& run: runs) bySteps = bySteps && run.logStyle->isBySteps();
  kj::Vector<Chart> charts;
  addCharts(charts, runs, kj::arrayPtr(ACCURACIES, kj::size(ACCURACIES)), "Accuracy", bySteps,
      Far::SHOWN);
  addTopKCharts(charts, runs, bySteps);
  addCharts(charts, runs, kj::arrayPtr(LOSSES, kj::size(LOSSES)), "Loss", bySteps, Far::CUT_OFF);

  kj::Vector<Series> speeds;
  for (uint i: kj::indices(runs)) {
    auto name = runs.size() == 1 ? "images/s"_kj : kj::StringPtr(runs[i].label);
    auto points = jobSpeed(runs[i].record);
    double end_s = points.size() == 0 ? 0 : points.back().x;
    addSeries(speeds, name, i, kj::mv(points), Series::LINE);
    for (auto& each: compare(runs[i])) {
      if (each.figure != "images/s" || end_s == 0) continue;
      addMarks(speeds, name, i, kj::arr(Point{end_s, each.published}));
      break;
    }
  }
  if (!speeds.empty()) {
    charts.add(Chart{kj::str("Images/s of the job"), "s since the first step", {.fromZero = true},
        {.fromZero = true, .rounded = true}, speeds.releaseAsArray()});
  }
  return charts.releaseAsArray();
}

}  // namespace runner
