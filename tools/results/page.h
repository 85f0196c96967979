// tools/results/page.h: the results page: text written by hand, and tables between markers that are
// made from logs. Pure functions on texts.
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

// A table of the page, as it is and as it should be.
struct PageTable {
  kj::String name;
  uint line;           // of its first marker, from 1
  kj::String current;  // the text between the markers
  kj::String fresh;    // the right text
};

// A page in pieces: `text[0] tables[0] text[1] tables[1] … text[n]`. The markers belong to the
// texts.
struct ResultsPage {
  kj::Array<kj::String> texts;
  kj::Array<PageTable> tables;

  // Returns the page with all tables as they should be.
  kj::String updated() const;
  // Returns one line for each table that is out of date or was edited by hand. `name` is the
  // page's.
  kj::Array<kj::String> complaints(kj::StringPtr name) const;
};

// Cuts the page `name` into pieces and makes its tables. A table stands between lines `<!--
// results: x begin -->` and `<!-- results: x end -->`, where x is `machines`, `datasets`,
// `performance` or an experiment of `index`. Throws if a marker has no partner, names no table, or
// comes twice. Throws if the page lacks the table of an experiment, or if a log cannot be read.
ResultsPage readPage(kj::StringPtr name, kj::StringPtr page, const ResultsIndex& index,
    kj::ArrayPtr<const KeptLog> logs);

}  // namespace tools
