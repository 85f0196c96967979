// runner/report/report_charts.h: the charts of a report, made from the figures of runs.
#pragma once

#include "runner/report/svg_chart.h"
#include "runner/tables/reported_run.h"

namespace runner {

// Returns the charts of accuracy and loss over epochs (over updates of the job if all runs are
// `bySteps`), and of the whole job's images/s over time. A single run has training and validation
// in one chart. Several runs have one chart for training and one for validation, with one line per
// run. Series::look is the index of the run. Published figures are hollow marks. Charts without a
// point are left out.
kj::Array<Chart> chartsOf(kj::ArrayPtr<const ReportedRun> runs);

// Returns the means of groups of neighbours, at most `most` points.
kj::Array<Point> thinned(kj::ArrayPtr<const Point> points, size_t most);

}  // namespace runner
