// A log of any style, as parse_log reads it.
#include "runner/text/text_table.h"
#include "tests/fuzz/fuzz.h"
#include "tools/logs/log_table.h"

namespace fuzz {

void feed(Bytes input) {
  auto table = tools::textOf(tools::readLogTable(input.asChars(), "x.log"));
  runner::formatTable(table, runner::TableFormat::MARKDOWN);
  runner::formatTable(table, runner::TableFormat::CSV);
}

}  // namespace fuzz
