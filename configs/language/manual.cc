#include "configs/language/manual.h"

namespace configs {

namespace {

// Returns text for a cell of a Markdown table.
kj::String cell(kj::StringPtr text) {
  kj::Vector<char> result;
  for (char c: text) {
    if (c == '|') result.add('\\');
    result.add(c == '\n' ? ' ' : c);
  }
  return kj::heapString(result.asPtr());
}

}  // namespace

void Manual::Section::addRow(
    kj::StringPtr key, kj::StringPtr type, kj::StringPtr defaultValue, kj::StringPtr meaning) {
  rows.add(kj::str(
      "| `", key, "` | ", cell(type), " | ", cell(defaultValue), " | ", cell(meaning), " |\n"));
}

kj::String Manual::toString() const {
  kj::Vector<kj::String> parts;
  for (auto& section: sections) {
    if (!parts.empty()) parts.add(kj::str("\n"));
    auto level = kj::repeat('#', kj::min(section.depth + 1, 6u));
    parts.add(kj::str(level, " ", section.heading, "\n"));
    if (section.intro.size() > 0) parts.add(kj::str("\n", section.intro, "\n"));
    if (section.rows.empty()) continue;
    parts.add(kj::str("\n| key | type | default | meaning |\n| --- | --- | --- | --- |\n"));
    for (auto& row: section.rows) parts.add(kj::str(row));
  }
  return kj::strArray(parts, "");
}

}  // namespace configs
