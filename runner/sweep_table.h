// runner/sweep_table.h: what the runs of a sweep came to, one row a run.
#pragma once

#include <kj/array.h>
#include <kj/string.h>

#include "runner/run_record.h"
#include "runner/sweep.h"

namespace runner {

// A run with what it was set to. Both must outlive the row.
struct SweepRow {
  kj::ArrayPtr<const Setting> settings;
  const RunRecord& record;
};

// A Markdown table: a column a key (`shortKeys`), then accuracies after the last epoch, seconds an
// epoch (mean over those after the first, if there are several), and how the run ended.
kj::String formatSweepTable(
    kj::ArrayPtr<const kj::String> shortKeys, kj::ArrayPtr<const SweepRow> rows);

// "finished", "failed: reason", "stopped: reason", "unfinished".
kj::String stateText(const RunRecord& record);

}  // namespace runner
