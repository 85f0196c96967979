#include "tools/bench/figures.h"

#include <capnp/compat/json.h>
#include <kj/debug.h>
#include <time.h>

#include <algorithm>

#include "configs/language/display_width.h"

namespace tools {
namespace {

using kj::uint;

kj::String line(kj::ArrayPtr<const kj::String> cells, kj::ArrayPtr<const uint> widths, uint left) {
  kj::Vector<char> text;
  uint spaces = 0;  // before the next text; a line does not end with spaces
  for (size_t i: kj::indices(cells)) {
    uint free = widths[i] - configs::columnsOf(cells[i]);
    if (i >= left) spaces += free;
    if (cells[i].size() > 0) {
      for (; spaces > 0; --spaces) text.add(' ');
      text.addAll(cells[i]);
    }
    spaces += 2 + (i < left ? free : 0);
  }
  text.add('\n');
  return kj::heapString(text);
}

double secondsOf(clockid_t clock) {
  timespec time;
  KJ_SYSCALL(::clock_gettime(clock, &time));
  return time.tv_sec + time.tv_nsec * 1e-9;
}

}  // namespace

double medianOf(kj::ArrayPtr<const double> values) {
  auto sorted = kj::heapArray(values);
  std::sort(sorted.begin(), sorted.end());
  size_t n = sorted.size();
  return n % 2 == 1 ? sorted[n / 2] : (sorted[n / 2 - 1] + sorted[n / 2]) / 2;
}

double processSeconds() {
  return secondsOf(CLOCK_PROCESS_CPUTIME_ID);
}

double threadSeconds() {
  return secondsOf(CLOCK_THREAD_CPUTIME_ID);
}

kj::String inColumns(const runner::TextTable& table, uint left) {
  auto widths = KJ_MAP(title, table.header) {
    return configs::columnsOf(title);
  };
  for (auto& row: table.rows) {
    for (size_t i: kj::indices(row)) widths[i] = kj::max(widths[i], configs::columnsOf(row[i]));
  }
  auto lines = KJ_MAP(row, table.rows) {
    return line(row, widths, left);
  };
  return kj::str(line(table.header, widths, left), kj::strArray(lines, ""));
}

void Json::addText(kj::StringPtr key, kj::StringPtr text) {
  add(key, capnp::JsonCodec().encode(capnp::Text::Reader(text)));
}

}  // namespace tools
