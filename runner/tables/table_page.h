// runner/tables/table_page.h: all tables of runs on one page: as files have them, and as terminals
// show them.
#pragma once

#include "runner/tables/reported_run.h"

namespace runner {

// The files table.md and table.csv. A single run has the table of its log, with at most
// `stepRowsMax` rows if that is one by steps; several have one row per run, and the reasons of
// those that failed. What was published follows in Markdown, and of a single run what went through
// its store. The columns of table.csv do not depend on how the runs ended: a single run that left
// no table of its log has the header alone.
kj::String tableMarkdown(
    kj::ArrayPtr<const ReportedRun> runs, uint stepRowsMax = uint(kj::maxValue));
kj::String tableCsv(kj::ArrayPtr<const ReportedRun> runs);

// What tableMarkdown() has, for people at a terminal: aligned, and with as many columns as fit into
// `columns`. Of several runs those columns are their labels, then the most important results.
kj::String tableForTerminal(
    kj::ArrayPtr<const ReportedRun> runs, uint columns, uint stepRowsMax = uint(kj::maxValue));

}  // namespace runner
