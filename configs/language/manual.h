// configs/language/manual.h: the reference manual in the making, as readers add to it.
#pragma once

#include "configs/language/document.h"

namespace configs {

// Sections in the order in which they were met: a heading, a paragraph, and a table with one row a
// key.
class Manual {
public:
  struct Section {
    uint depth;
    kj::String heading;
    kj::String intro;
    kj::Vector<kj::String> rows;  // lines of the table, complete

    void addRow(
        kj::StringPtr key, kj::StringPtr type, kj::StringPtr defaultValue, kj::StringPtr meaning);
  };

  // What readers of a manual write to, and nobody reads.
  Diagnostics diagnostics;
  Table resolved;

  // Returns the index of a new section at the end; `depth` 0 is the title's.
  size_t addSection(uint depth, kj::String heading, kj::String intro) {
    sections.add(Section{depth, kj::mv(heading), kj::mv(intro), {}});
    return sections.size() - 1;
  }

  Section& section(size_t index) { return sections[index]; }

  // The heading under which a table of kinds stands; notes `heading` if it stands nowhere yet, and
  // gives null.
  kj::Maybe<kj::StringPtr> printedUnder(const void* table, kj::StringPtr heading) {
    for (auto& entry: printed) {
      if (entry.table == table) return kj::StringPtr(entry.heading);
    }
    printed.add(Printed{table, kj::str(heading)});
    return nullptr;
  }

  // The Markdown text.
  kj::String toString() const;

private:
  struct Printed {
    const void* table;
    kj::String heading;
  };
  kj::Vector<Section> sections;
  kj::Vector<Printed> printed;
};

}  // namespace configs
