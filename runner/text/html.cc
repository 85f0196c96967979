#include "runner/text/html.h"

#include <kj/vector.h>

namespace runner {

namespace {

using Row = kj::ArrayPtr<const kj::String>;

// `ofNumbers` says which columns are numbers.
kj::String htmlRow(kj::ArrayPtr<const bool> ofNumbers, Row row, kj::StringPtr element) {
  kj::Vector<kj::String> cells;
  for (size_t i: kj::indices(row)) {
    cells.add(kj::str("<", element, ofNumbers[i] ? " class=\"n\"" : "", ">", escaped(row[i]), "</",
        element, ">"));
  }
  return kj::str("<tr>", kj::strArray(cells, ""), "</tr>\n");
}

}  // namespace

kj::String escaped(kj::ArrayPtr<const char> text) {
  kj::Vector<char> result(text.size());
  for (char c: text) {
    switch (c) {
      case '<':
        result.addAll("&lt;"_kj);
        break;
      case '>':
        result.addAll("&gt;"_kj);
        break;
      case '&':
        result.addAll("&amp;"_kj);
        break;
      case '"':
        result.addAll("&quot;"_kj);
        break;
      case '\'':
        result.addAll("&#39;"_kj);
        break;
      default:
        if ((c < 0 || c >= ' ' || c == '\n' || c == '\t') && c != 0x7f) result.add(c);
    }
  }
  return kj::heapString(result.asPtr());
}

kj::String htmlOf(const TextTable& table) {
  auto ofNumbers = kj::heapArray<bool>(table.header.size());
  for (size_t i: kj::indices(ofNumbers)) ofNumbers[i] = isOfNumbers(table, i);
  auto rows = KJ_MAP(row, table.rows) {
    return htmlRow(ofNumbers, row, "td");
  };
  return kj::str("<div class=\"box\"><table>\n<thead>", htmlRow(ofNumbers, table.header, "th"),
      "</thead>\n<tbody>\n", kj::strArray(rows, ""), "</tbody>\n</table></div>\n");
}

}  // namespace runner
