// Getters of words, of tables of kinds, and of sections.
#include "configs/language/manual.h"
#include "configs/language/reader.h"

namespace configs {

namespace {

template <typename T>
kj::Array<kj::StringPtr> namesOf(kj::ArrayPtr<const T> rows) {
  return KJ_MAP(row, rows)->kj::StringPtr {
    return row.name;
  };
}

// Returns the help for a `value` that should be `{ kind = … }`. If it is a kind, or nearly one, the
// help writes it into such a table.
kj::String helpForKind(
    kj::StringPtr name, const Value& value, kj::ArrayPtr<const kj::StringPtr> kinds) {
  if (value.content.is<kj::String>()) {
    KJ_IF_MAYBE(kind, nearest(value.content.get<kj::String>(), kinds)) {
      // An element of a list, `layers[2]`, has no separate key.
      auto key = name.endsWith("]") ? kj::str() : kj::str(name, " = ");
      return kj::str("write `", key, "{ kind = \"", *kind, "\" }`");
    }
  }
  return kj::str("write { kind = \"", kinds[0], "\", … }");
}

// Whether the file has no header for `table`. For example, `[data.augment]` alone also makes a
// table `data`.
bool isImplicit(const Table& table) {
  if (table.entries.empty() || !table.entries[0].value->content.is<Table>()) return false;
  auto& first = table.entries[0].value->content.get<Table>().span;
  return first.line == table.span.line && first.column == table.span.column;
}

}  // namespace

// -------------------------------------------------------------------------------------------------
// Words of closed tables.

kj::Maybe<size_t> Reader::chooseRow(kj::StringPtr key, kj::StringPtr doc,
    kj::ArrayPtr<const Row> rows, Need need, kj::StringPtr defaultName) {
  auto names = namesOf(rows);
  auto indexOf = [&](kj::StringPtr word) -> kj::Maybe<size_t> {
    for (size_t i: kj::indices(rows)) {
      if (rows[i].name == word) return i;
    }
    return nullptr;
  };
  size_t result = 0;
  if (need == Need::DEFAULT) {
    auto row = indexOf(defaultName);
    result = KJ_REQUIRE_NONNULL(row, "the default must be a row", key, defaultName);
  }
  if (manual != nullptr) {
    auto lines = KJ_MAP(row, rows) {
      return kj::str("<br>`", row.name, "`: ", row.doc);
    };
    auto absent = need == Need::DEFAULT    ? kj::str("`\"", defaultName, "\"`")
                  : need == Need::REQUIRED ? kj::str("required")
                                           : kj::str("none");
    describe(key, "word", absent, kj::str(doc, kj::strArray(lines, "")));
  }
  KJ_IF_MAYBE(value, find(key)) {
    if (value->content.is<kj::String>()) {
      auto& word = value->content.get<kj::String>();
      KJ_IF_MAYBE(index, indexOf(word)) {
        result = *index;
      } else {
        sink.diagnostics.error(
            value->span, kj::str("`", word, "` is not a known `", key, "`"), suggest(word, names));
      }
    } else {
      wrongType(key, *value, "a string", kj::str("one of ", kj::strArray(names, ", ")));
    }
  } else if (need == Need::OPTIONAL) {
    return nullptr;
  } else if (need == Need::REQUIRED) {
    missing(key, kj::str("one of ", kj::strArray(names, ", ")), doc);
  }
  keep(key, newValue(kj::str(rows[result].name)));
  return result;
}

// -------------------------------------------------------------------------------------------------
// Tables.

kj::Own<Value> Reader::readRow(kj::StringPtr name, kj::String path, const Value& value,
    kj::ArrayPtr<const Row> rows, ReadRow& read, Diagnostics::Premise allKnown) {
  auto names = namesOf(rows);
  auto nothing = [&]() {
    readNothing(0, read);
    return newValue(Table());
  };
  if (!value.content.is<Table>()) {
    wrongType(name, value, "a table", helpForKind(name, value, names));
    return nothing();
  }
  auto& table = value.content.get<Table>();
  Table resolved;
  Reader reader(
      table, table.span, Sink{sink.diagnostics, resolved}, kj::mv(path), complete, allKnown);
  KJ_IF_MAYBE(kind, reader.find("kind")) {
    if (!kind->content.is<kj::String>()) {
      wrongType("kind", *kind, "a string", kj::str("one of ", kj::strArray(names, ", ")));
      return nothing();
    }
    auto& word = kind->content.get<kj::String>();
    for (size_t i: kj::indices(rows)) {
      if (rows[i].name != word) continue;
      reader.keep("kind", newValue(kj::str(word)));
      read(i, reader);
      reader.finish();
      return newValue(kj::mv(resolved));
    }
    sink.diagnostics.error(kind->span,
        kj::str("`", word, "` is not a known `kind` of `", name, "`"), suggest(word, names));
  } else {
    reader.missing("kind", kj::str("one of ", kj::strArray(names, ", ")), "Which kind it is.");
  }
  return nothing();
}

List Reader::readRows(kj::StringPtr name, kj::StringPtr path, const Value& value,
    kj::ArrayPtr<const Row> rows, ReadRow& read) {
  List resolved;
  if (value.content.is<List>()) {
    auto& list = value.content.get<List>();
    for (size_t i: kj::indices(list)) {
      resolved.add(
          readRow(kj::str(name, "[", i, "]"), kj::str(path, "[", i, "]"), *list[i], rows, read));
    }
  } else {
    wrongType(name, value, "a list", kj::str("write [{ kind = \"", rows[0].name, "\", … }]"));
  }
  return resolved;
}

bool Reader::readKind(kj::StringPtr key, kj::StringPtr doc, const Rows& rows, Need need,
    kj::StringPtr defaultKind, ReadRow read) {
  KJ_REQUIRE(rows.rows.size() > 0, "a table of kinds needs a row", key);
  size_t first = 0;
  if (need == Need::DEFAULT) {
    while (first < rows.rows.size() && rows.rows[first].name != defaultKind) ++first;
    KJ_REQUIRE(first < rows.rows.size(), "the default must be a row", key, defaultKind);
  }
  printKinds(key, doc, rows, "table",
      need == Need::REQUIRED  ? kj::str("required")
      : need == Need::DEFAULT ? kj::str("`{ kind = \"", defaultKind, "\" }`")
                              : kj::str("none"),
      read);
  KJ_IF_MAYBE(value, find(key)) {
    keep(key, readRow(key, pathOf(key), *value, rows.rows, read));
    return true;
  }
  if (need == Need::OPTIONAL) return false;
  if (need == Need::DEFAULT && table != nullptr) {
    Value absent;
    Table only;
    only.span = place;
    only.entries.add(Entry{kj::str("kind"), place, kj::heap(Value{place, kj::str(defaultKind)})});
    absent.content = kj::mv(only);
    keep(key, readRow(key, pathOf(key), absent, rows.rows, read, allKnown));
    return true;
  }
  missing(
      key, kj::str("{ kind = … }, one of ", kj::strArray(namesOf(rows.rows.asPtr()), ", ")), doc);
  readNothing(first, read);
  return true;
}

kj::Array<size_t> Reader::readKindLists(
    kj::StringPtr key, kj::StringPtr doc, const Rows& rows, uint depth, ReadRow read) {
  KJ_REQUIRE(rows.rows.size() > 0, "a table of kinds needs a row", key);
  printKinds(
      key, doc, rows, depth == 1 ? "list of tables" : "list of lists of tables", "`[]`", read);
  kj::Vector<size_t> sizes;
  KJ_IF_MAYBE(value, find(key)) {
    List resolved;
    if (depth == 1) {
      resolved = readRows(key, pathOf(key), *value, rows.rows, read);
      sizes.add(resolved.size());
    } else if (value->content.is<List>()) {
      auto& lists = value->content.get<List>();
      for (size_t i: kj::indices(lists)) {
        auto list = readRows(kj::str(key, "[", i, "]"), kj::str(pathOf(key), "[", i, "]"),
            *lists[i], rows.rows, read);
        sizes.add(list.size());
        resolved.add(newValue(kj::mv(list)));
      }
    } else {
      wrongType(key, *value, "a list of lists",
          kj::str("write [[{ kind = \"", rows.rows[0].name, "\", … }]]"));
    }
    keep(key, newValue(kj::mv(resolved)));
  }
  return sizes.releaseAsArray();
}

bool Reader::readSection(kj::StringPtr key, kj::StringPtr doc, Need need, ReadTable read) {
  KJ_IF_MAYBE(m, manual) {
    auto heading = kj::str("`[", pathOf(key), "]`");
    // A user finds a section of the file by its heading. A table inside a section also has a row.
    if (path.size() > 0) {
      describe(key, kj::str("table, see ", heading), need == Need::OPTIONAL ? "none" : "`{}`", doc);
    }
    uint depth = m->section(manualSection).depth + 1;
    auto section = m->addSection(depth, kj::mv(heading), kj::str(doc));
    Reader reader(*m, section, pathOf(key));
    read(reader);
    return need != Need::OPTIONAL;
  }
  auto readTable = [&](const Table& table, Span span, Diagnostics::Premise allKnown) {
    Table resolved;
    Reader reader(table, span, Sink{sink.diagnostics, resolved}, pathOf(key), complete, allKnown);
    read(reader);
    reader.finish();
    keep(key, newValue(kj::mv(resolved)));
  };
  KJ_IF_MAYBE(value, find(key)) {
    if (value->content.is<Table>()) {
      auto& table = value->content.get<Table>();
      readTable(table, table.span, isImplicit(table) ? allKnown : 0);
      return true;
    }
    // A `--set` has one line only.
    wrongType(key, *value, "a table",
        isOverride(value->span) ? kj::str("set one of its keys: --set ", pathOf(key), ".KEY=VALUE")
                                : kj::str("write [", pathOf(key), "] on a separate line"));
  } else if (table != nullptr) {
    if (need == Need::OPTIONAL) return false;
    readTable(Table(), place, allKnown);
    return true;
  } else if (need == Need::OPTIONAL) {
    return false;
  }
  auto readAlone = [&](size_t, Reader& reader) { read(reader); };
  ReadRow readRow(readAlone);
  readNothing(0, readRow);
  return true;
}

void Reader::readSections(kj::StringPtr key, kj::StringPtr doc, ReadTable read) {
  KJ_IF_MAYBE(m, manual) {
    auto heading = kj::str("`[[", pathOf(key), "]]`");
    describe(key, kj::str("list of tables, see ", heading), "`[]`", doc);
    uint depth = m->section(manualSection).depth + 1;
    auto section = m->addSection(depth, kj::mv(heading), kj::str(doc));
    Reader reader(*m, section, pathOf(key));
    read(reader);
    return;
  }
  KJ_IF_MAYBE(value, find(key)) {
    eachOf(key, *value, "[{ … }]", [&](kj::StringPtr name, const Value& element, List& resolved) {
      if (!element.content.is<Table>()) return wrongType(name, element, "a table");
      auto& table = element.content.get<Table>();
      Table kept;
      Reader reader(table, table.span, Sink{sink.diagnostics, kept}, pathOf(name), complete);
      read(reader);
      reader.finish();
      resolved.add(newValue(kj::mv(kept)));
    });
  }
}

kj::ArrayPtr<const Entry> Reader::entries(kj::StringPtr key, kj::StringPtr doc) {
  describe(key, "table", "`{}`", doc);
  KJ_IF_MAYBE(value, find(key)) {
    if (value->content.is<Table>()) {
      keep(key, clone(*value));
      return value->content.get<Table>().entries;
    }
    wrongType(key, *value, "a table", kj::str("write `", key, " = { \"data.batch_size\" = … }`"));
  }
  return nullptr;
}

void Reader::readEntry(kj::StringPtr key, const Entry& entry, ReadTable read) {
  auto& table = entry.value->content.get<Table>();
  Table kept;
  Reader reader(table, table.span, Sink{sink.diagnostics, kept},
      kj::str(pathOf(key), ".\"", entry.key, "\""), complete);
  read(reader);
  reader.finish();
}

void Reader::printKinds(kj::StringPtr key, kj::StringPtr doc, const Rows& rows, kj::StringPtr shape,
    kj::StringPtr defaultValue, ReadRow& read) {
  KJ_IF_MAYBE(m, manual) {
    bool list = shape != "table";
    auto heading = kj::str("`", list ? "[[" : "[", pathOf(key), list ? "]]" : "]", "`");
    KJ_IF_MAYBE(elsewhere, m->printedUnder(rows.identity, heading)) {
      describe(key, kj::str(shape, ", see ", *elsewhere), defaultValue, doc);
      return;
    }
    describe(key, kj::str(shape, ", see ", heading), defaultValue, doc);
    uint depth = m->section(manualSection).depth + 1;
    auto words = kj::strArray(namesOf(rows.rows.asPtr()), "`, `");
    m->addSection(depth, kj::mv(heading), kj::str("`kind` is one of `", words, "`."));
    for (size_t i: kj::indices(rows.rows)) {
      auto& row = rows.rows[i];
      auto section =
          m->addSection(depth + 1, kj::str("`kind = \"", row.name, "\"`"), kj::str(row.doc));
      Reader reader(*m, section, pathOf(key));
      read(i, reader);
    }
  }
}

}  // namespace configs
