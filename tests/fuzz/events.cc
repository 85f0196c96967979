// The events of a run, and the tables and reports that are made from them.
#include "runner/logs/log_styles.h"
#include "runner/logs/run_record.h"
#include "runner/report/report.h"
#include "runner/tables/reported_run.h"
#include "runner/tables/run_table.h"
#include "runner/tables/run_tables.h"
#include "runner/tables/table_page.h"
#include "runner/text/text_table.h"
#include "tests/fuzz/fuzz.h"

namespace fuzz {

void feed(Bytes input) {
  runner::RunFolder run{kj::str(folder())};
  fileOf("events.jsonl", input);
  for (auto& style: runner::LOG_STYLES) {
    refusalOf([&]() { runner::readRunTable(run, style); });
  }
  auto reported = kj::heapArray<runner::ReportedRun>(1);
  reported[0] = runner::readReportedRun(run.path, "run");
  runner::readTable(reported[0]);
  runner::tellApart(reported);
  runner::judgeAll(reported);
  runner::reportHtml("title", reported);
  runner::tableMarkdown(reported);
  runner::tableForTerminal(reported, 60, 20);
  runner::tableCsv(reported);
  runner::formatTable(runner::resultsTable(reported, 4), runner::TableFormat::MARKDOWN);
}

}  // namespace fuzz
