// runner/report/report_charts.h: the charts of a report: which figures of which runs become which
// series.
#pragma once

#include "runner/report/svg_chart.h"
#include "runner/tables/reported_run.h"

namespace runner {

// Accuracy and loss over epochs (over updates of the job if all runs are `bySteps`), and the whole
// job's images/s over time. A single run has training and validation in one chart; of several each
// has its own, with a line a run, the look being the run's place. What was published stands in as
// hollow marks. Charts without a point are left out.
kj::Array<Chart> chartsOf(kj::ArrayPtr<const ReportedRun> runs);

// The same points in groups of neighbours, each its mean, so that there are at most `most`.
kj::Array<Point> thinned(kj::ArrayPtr<const Point> points, size_t most);

}  // namespace runner
