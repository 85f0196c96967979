// tools/logs/log_table.h: makes the table of a log of any style. The lines in the log decide
// which table.
#pragma once

#include <kj/one-of.h>

#include "tools/logs/epoch_log_table.h"
#include "tools/logs/speed_table.h"
#include "tools/logs/step_log_table.h"

namespace tools {

// By epochs (style mxnet), by steps (tf_replica, tf_aws, schlag), or by workers, if a log of style
// mxnet has only speed lines.
using LogTable = kj::OneOf<EpochLogTable, StepLogTable, SpeedTable>;

// Makes the table of the log file `name` (used in messages), whose whole text is `log`. Throws
// FAILED
//
//   - if it has lines of two styles;
//   - if lines by steps are of several runs. The sign is that the updates of the whole job go back:
//     those of one worker, or, in lines without a worker, to less than half. Very short runs may
//     not be noticed;
//   - if `options` has something that the kind of table does not have: epochs, a run, metrics or
//     MAX for a table by steps or by workers, `every` for a table by workers;
//   - if the log is UTF-16 text;
//   - if no step is left to show;
//   - and as readEpochLogTable() does.
LogTable readLogTable(
    kj::ArrayPtr<const char> log, kj::StringPtr name, const TableOptions& options = {});

runner::TextTable textOf(const LogTable& table);

}  // namespace tools
