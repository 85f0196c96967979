// tools/logs/log_runs.h: separates the runs in a log with lines per epoch.
#pragma once

#include <kj/array.h>
#include <kj/string.h>

#include "tools/logs/epoch_lines.h"

namespace tools {

// Returns the part of `lines` that is run number `wanted` (from 1), or the only run. None of
// `lines` is a speed line. `metrics` are the metrics of the table: another run begins if a node
// reports one of them twice for an epoch. Throws FAILED, with the file's `name`, if there are
// several runs and `wanted` is null, or if there are fewer runs. `wayOut` is the advice about
// several runs; empty: --run. readEpochLogTable() says how runs are separated.
kj::ArrayPtr<const LogLine> chooseRun(kj::ArrayPtr<const LogLine> lines, kj::StringPtr name,
    kj::ArrayPtr<const kj::String> metrics, kj::Maybe<uint> wanted, kj::StringPtr wayOut = "");

}  // namespace tools
