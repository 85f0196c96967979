// runner/tables/run_table.h: makes the table of a run from its events.
#pragma once

#include <kj/one-of.h>

#include "runner/logs/run_folder.h"
#include "runner/tables/result_table.h"
#include "runner/tables/step_table.h"

namespace runner {

// One row per epoch, or for log styles with lines per step, one row per line.
using RunTable = kj::OneOf<ResultTable, StepTable>;

// Reads the events of the run in `folder`, whose log has this style. Figures are rounded as in the
// lines of log.txt, so that parse_log makes the same table of that file. Throws as eachEvent().
RunTable readRunTable(const RunFolder& folder, const LogStyle& style);

}  // namespace runner
