// runner/report/report.h: the report of one or several runs: table.md, table.csv, and a
// self-contained report.html.
#pragma once

#include "runner/system/files.h"
#include "runner/tables/reported_run.h"

namespace runner {

// Every page begins with these bytes.
constexpr kj::StringPtr REPORT_BEGIN =
    "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n"_kj;

// Returns the page: results, beside published figures; curves; the time of a step by verbs;
// traffic; every value used; the machine; the weights. The page is also well-formed XML. The same
// runs give the same text.
kj::String reportHtml(kj::StringPtr title, kj::ArrayPtr<const ReportedRun> runs);

// Returns one line about the results of all runs: states, accuracy, time, expectations.
kj::String verdictOf(kj::ArrayPtr<const ReportedRun> runs);

// Returns a file in `folder` that another program has written and writeReport() would replace. Null
// if there is none.
kj::Maybe<kj::String> foreignReportIn(kj::StringPtr folder);

// Writes report.html, table.md and table.csv to `folder`. Throws if one of them cannot be written.
// `wayOut` says where else the user may write.
void writeReport(kj::StringPtr folder, kj::StringPtr title, kj::ArrayPtr<const ReportedRun> runs,
    kj::StringPtr wayOut = otherRuns());

}  // namespace runner
