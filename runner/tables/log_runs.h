// runner/tables/log_runs.h: where one run ends and the next begins in a log with lines per epoch.
#pragma once

#include <kj/array.h>
#include <kj/string.h>

#include "runner/logs/log_lines.h"

namespace runner {

// The part of `lines`, none of them speed lines, that is the run number `wanted` (from 1), or the
// only run. `metrics` are those that the table is made of: where a node tells one of them twice for
// an epoch, another run has begun. Throws FAILED, with the file's `name`, if there are several runs
// and `wanted` is null, or if there are fewer. `wayOut` of several runs: empty means --run.
// readResultTable() says how runs are told apart.
kj::ArrayPtr<const LogLine> chooseRun(kj::ArrayPtr<const LogLine> lines, kj::StringPtr name,
    kj::ArrayPtr<const kj::String> metrics, kj::Maybe<uint> wanted, kj::StringPtr wayOut = "");

}  // namespace runner
