// runner/log_table.h: the table of a log of any style: what is found in it decides which.
#pragma once

#include <kj/one-of.h>

#include "runner/result_table.h"
#include "runner/step_table.h"

namespace runner {

// By epochs (style mxnet), or by steps (tf_replica, tf_aws, schlag).
using LogTable = kj::OneOf<ResultTable, StepTable>;

// Makes the table of the log file `name` (used in messages), whose whole text is `log`. Throws
// FAILED if lines of two styles are found, if `options` has what the kind of table does not
// (epochs or a run of steps), and where readResultTable() does.
LogTable readLogTable(
    kj::ArrayPtr<const char> log, kj::StringPtr name, const TableOptions& options = {});

TextTable textOf(const LogTable& table);

}  // namespace runner
