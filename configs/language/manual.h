// configs/language/manual.h: the reference manual, to which readers add.
#pragma once

#include "configs/language/document.h"

namespace configs {

// The sections in the order in which readers met them. Each has a heading, a paragraph, and a table
// with one row per key.
class Manual {
public:
  struct Section {
    uint depth;
    kj::String heading;
    kj::String intro;
    kj::Vector<kj::String> rows;  // complete lines of the table

    void addRow(
        kj::StringPtr key, kj::StringPtr type, kj::StringPtr defaultValue, kj::StringPtr meaning);
  };

  // Every Reader writes errors and resolved values. In a manual they go here, and are not used.
  Diagnostics diagnostics;
  Table resolved;

  // Returns the index of a new section at the end; `depth` 0 is the title's.
  size_t addSection(uint depth, kj::String heading, kj::String intro) {
    sections.add(Section{depth, kj::mv(heading), kj::mv(intro), {}});
    return sections.size() - 1;
  }

  Section& section(size_t index) { return sections[index]; }

  // Returns the heading under which the table of kinds `table` is printed already. If it is not
  // printed yet, remembers `heading` for it and returns null.
  kj::Maybe<kj::StringPtr> printedUnder(const void* table, kj::StringPtr heading) {
    for (auto& entry: printed) {
      if (entry.table == table) return kj::StringPtr(entry.heading);
    }
    printed.add(Printed{table, kj::str(heading)});
    return nullptr;
  }

  // Returns the manual as Markdown.
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
