// runner/tables/log_table.h: the table of a log of any style: what is found in it decides which.
#pragma once

#include <kj/one-of.h>

#include "runner/tables/result_table.h"
#include "runner/tables/speed_table.h"
#include "runner/tables/step_table.h"

namespace runner {

// By epochs (style mxnet), by steps (tf_replica, tf_aws, schlag), or by workers, if a log of style
// mxnet has only speed lines.
using LogTable = kj::OneOf<ResultTable, StepTable, SpeedTable>;

// Makes the table of the log file `name` (used in messages), whose whole text is `log`. Throws
// FAILED if lines of two styles are found, if lines by steps are of several runs (the updates of
// the whole job go back: those that a worker saw, or, where no line says whose it is, to less than
// half; runs of a few lines may pass), if `options` has what the kind of table does not
// (epochs, a run or metrics of steps and of speeds), if no step is left to show, and where
// readResultTable() does.
LogTable readLogTable(
    kj::ArrayPtr<const char> log, kj::StringPtr name, const TableOptions& options = {});

TextTable textOf(const LogTable& table);

}  // namespace runner
