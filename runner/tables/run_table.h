// runner/tables/run_table.h: makes the table of a run from its events.
#pragma once

#include <kj/one-of.h>

#include "runner/logs/run_folder.h"
#include "runner/tables/result_table.h"
#include "runner/tables/step_table.h"

namespace runner {

// One row per epoch, or for log styles with lines per step, one row per line.
using RunTable = kj::OneOf<ResultTable, StepTable>;

// Reads the events of the run in `folder`, whose log has this style. A table by epochs has a column
// of the top-k accuracy if `topK`, the run's log.top_k, is not 0. Figures are rounded as in the
// lines of log.txt, so that parse_log makes the same table of that file. Throws as eachEvent().
RunTable readRunTable(const RunFolder& folder, const LogStyle& style, uint topK = 0);

}  // namespace runner
