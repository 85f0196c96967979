// runner/tables/table_page.h: puts all tables of runs on one page, for files and for terminals.
#pragma once

#include "runner/tables/reported_run.h"

namespace runner {

// Returns the text of table.md or table.csv. A single run has the table of its log, with at most
// `stepRowsMax` rows if it is a table by steps. Several runs have one row each, and the reasons of
// those that failed. Markdown also has the published figures, and for a single run the traffic of
// its store. The columns of table.csv do not depend on how the runs ended. Therefore the table.csv
// of a single run without rows consists of the header.
kj::String tableMarkdown(
    kj::ArrayPtr<const ReportedRun> runs, uint stepRowsMax = uint(kj::maxValue));
kj::String tableCsv(kj::ArrayPtr<const ReportedRun> runs);

// Returns the content of tableMarkdown() for people at a terminal: aligned, with as many columns as
// fit into `columns`. For several runs these columns are their labels, then the most important
// results.
kj::String tableForTerminal(
    kj::ArrayPtr<const ReportedRun> runs, uint columns, uint stepRowsMax = uint(kj::maxValue));

}  // namespace runner
