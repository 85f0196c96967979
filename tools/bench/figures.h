// tools/bench/figures.h: the output of benches: medians, tables for the terminal, JSON. Also
// measures processor time.
#pragma once

#include <kj/vector.h>

#include "runner/text/text_table.h"

namespace tools {

// Returns the median of at least one number.
double medianOf(kj::ArrayPtr<const double> values);

// Return the processor time of this process, with all its threads, and of this thread.
double processSeconds();
double threadSeconds();

// Returns the cells of a row or of a header.
template <typename... Values>
kj::Array<kj::String> cells(Values&&... values) {
  return kj::arr(kj::str(kj::fwd<Values>(values))...);
}

// Returns the table with aligned columns, two spaces apart. The first `left` columns are aligned at
// the left. The others are numbers, aligned at the right.
kj::String inColumns(const runner::TextTable& table, kj::uint left);

// An object of JSON, on one line.
class Json {
public:
  // `value` is a number, or JSON text.
  template <typename Value>
  void add(kj::StringPtr key, Value&& value) {
    pairs.add(kj::str('"', key, "\":", value));
  }
  void addText(kj::StringPtr key, kj::StringPtr text);

  kj::String object() const { return kj::str('{', kj::strArray(pairs, ","), '}'); }

private:
  kj::Vector<kj::String> pairs;
};

}  // namespace tools
