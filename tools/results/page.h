// tools/results/page.h: the results page: text by hand, and tables between markers that are made
// anew from logs. Texts in, texts out.
#pragma once

#include <kj/array.h>
#include <kj/string.h>

#include "tools/results/index.h"

namespace tools {

// A log and its name in the index.
struct KeptLog {
  kj::String name;
  kj::String text;
};

// A table of the page, and what stands there.
struct PageTable {
  kj::String name;
  uint line;           // of its first marker, from 1
  kj::String current;  // between the markers
  kj::String fresh;    // what belongs there
};

// A page in pieces: `text[0] tables[0] text[1] tables[1] … text[n]`. The markers belong to the
// texts.
struct ResultsPage {
  kj::Array<kj::String> texts;
  kj::Array<PageTable> tables;

  // The page with all tables as they should be.
  kj::String updated() const;
  // A line for each table that is not: out of date, or edited by hand. `name` is the page's.
  kj::Array<kj::String> complaints(kj::StringPtr name) const;
};

// Takes the page `name` apart and makes its tables. A table stands between lines
// `<!-- results: x begin -->` and `<!-- results: x end -->`, where x is `machines`, `datasets`,
// `performance` or an experiment of `index`. Throws if a marker has no partner, names no table, or
// comes twice, if a table of an experiment is not on the page, or if a log cannot be read.
ResultsPage readPage(kj::StringPtr name, kj::StringPtr page, const ResultsIndex& index,
    kj::ArrayPtr<const KeptLog> logs);

}  // namespace tools
