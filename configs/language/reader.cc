// Code that all getters share. The getters are in reader_values.cc, reader_paths.cc and
// reader_tables.cc.
#include "configs/language/reader.h"

#include "configs/language/manual.h"

namespace configs {

namespace {

kj::StringPtr nameOf(const Value& value) {
  KJ_SWITCH_ONEOF(value.content) {
    KJ_CASE_ONEOF(flag, bool) {
      return "a boolean"_kj;
    }
    KJ_CASE_ONEOF(integer, int64_t) {
      return "an integer"_kj;
    }
    KJ_CASE_ONEOF(real, double) {
      return "a real number"_kj;
    }
    KJ_CASE_ONEOF(text, kj::String) {
      return "a string"_kj;
    }
    KJ_CASE_ONEOF(list, List) {
      return "a list"_kj;
    }
    KJ_CASE_ONEOF(table, Table) {
      return "a table"_kj;
    }
  }
  KJ_UNREACHABLE;
}

// Whether `diagnostics` have an error in `value`. A table of a file has several places: its header,
// and the lines of its keys.
bool hasErrorIn(const Diagnostics& diagnostics, const Value& value) {
  if (diagnostics.hasErrorIn(value.span)) return true;
  if (value.content.is<List>()) {
    for (auto& element: value.content.get<List>()) {
      if (hasErrorIn(diagnostics, *element)) return true;
    }
  } else if (value.content.is<Table>()) {
    auto& table = value.content.get<Table>();
    if (diagnostics.hasErrorIn(table.span)) return true;
    for (auto& entry: table.entries) {
      if (diagnostics.hasErrorIn(entry.keySpan)) return true;
      if (hasErrorIn(diagnostics, *entry.value)) return true;
    }
  }
  return false;
}

// Whether a reader found an unknown key in `value`, or found that `value` should be a table and is
// not.
bool hasUnknownKey(const Diagnostics& diagnostics, const Value& value) {
  if (!value.content.is<Table>()) return diagnostics.hasErrorIn(value.span);
  for (auto& entry: value.content.get<Table>().entries) {
    if (diagnostics.hasErrorIn(entry.keySpan)) return true;
  }
  return false;
}

}  // namespace

Reader::Reader(const Table& table, Span place, Sink sink, kj::String path, bool complete,
    Diagnostics::Premise allKnown)
    : table(table),
      sink(sink),
      place(place),
      path(kj::mv(path)),
      complete(complete),
      allKnown(allKnown != 0 ? allKnown : sink.diagnostics.newPremise()) {}

Reader::Reader(Manual& manual, size_t section, kj::String path)
    : manual(manual),
      manualSection(section),
      sink{manual.diagnostics, manual.resolved},
      path(kj::mv(path)),
      complete(false) {}

Reader::Reader(Sink nowhere): sink(nowhere), complete(false) {}

void Reader::readNothing(size_t row, ReadRow& read) {
  Diagnostics diagnostics;
  Table resolved;
  Reader reader(Sink{diagnostics, resolved});
  read(row, reader);
}

void Reader::readRoot(const Document& document, Reading& reading, ReadTable read) {
  Reader reader(document.root, document.root.span, Sink{reading.diagnostics, reading.resolved},
      kj::str(), document.complete);
  read(reader);
  reader.finish();
}

kj::String Reader::pathOf(kj::StringPtr key) const {
  return path.size() == 0 ? kj::str(key) : kj::str(path, ".", key);
}

kj::Maybe<const Value&> Reader::find(kj::StringPtr key) {
  note(key, true);
  KJ_IF_MAYBE(t, table) {
    KJ_IF_MAYBE(entry, t->find(key)) {
      return *entry->value;
    }
  }
  return nullptr;
}

void Reader::note(kj::StringPtr key, bool isRead) const {
  for (auto& each: known) {
    if (each.key != key) continue;
    each.isRead = each.isRead || isRead;
    return;
  }
  known.add(Known{key, isRead});
}

void Reader::missing(kj::StringPtr key, kj::StringPtr type, kj::StringPtr doc) {
  if (table == nullptr || !complete) return;
  auto where = path.size() > 0 ? kj::str(" in [", path, "]") : kj::str();
  sink.diagnostics.error(place, kj::str("missing key `", key, "`", where),
      kj::str("add `", key, " = …` (", type, "): ", doc), allKnown);
}

void Reader::wrongType(
    kj::StringPtr name, const Value& value, kj::StringPtr expected, kj::StringPtr help) {
  // A value without content has been reported where it was read.
  if (value.content == nullptr) return;
  sink.diagnostics.error(
      value.span, kj::str("`", name, "` must be ", expected, ", not ", nameOf(value)), help);
}

void Reader::keep(kj::StringPtr key, kj::Own<Value> value) {
  for (auto& entry: sink.resolved.entries) {
    if (entry.key == key) {
      entry.value = kj::mv(value);
      return;
    }
  }
  sink.resolved.entries.add(Entry{kj::str(key), {}, kj::mv(value)});
}

void Reader::finish() {
  KJ_IF_MAYBE(t, table) {
    bool areAllKnown = true;
    for (auto& entry: t->entries) {
      bool isRead = false;
      for (auto& each: known) isRead = isRead || (each.isRead && each.key == entry.key);
      if (isRead) continue;
      if (areAllKnown) sink.diagnostics.withdraw(allKnown);
      areAllKnown = false;
      auto where = path.size() > 0 ? kj::str("in [", path, "]") : kj::str("at the top level");
      sink.diagnostics.error(entry.keySpan, kj::str("unknown key `", entry.key, "` ", where),
          suggest(
              entry.key, KJ_MAP(each, known) { return each.key; }));
    }
  }
}

bool Reader::has(kj::StringPtr key) const {
  note(key, false);
  return isWritten(key);
}

bool Reader::isWritten(kj::StringPtr key) const {
  KJ_IF_MAYBE(t, table) {
    return t->find(key) != nullptr;
  }
  return false;
}

bool Reader::isRight(kj::StringPtr key) const {
  KJ_IF_MAYBE(t, table) {
    KJ_IF_MAYBE(value, valueAt(*t, key)) return !hasErrorIn(sink.diagnostics, *value);
  }
  return true;
}

bool Reader::isManual() const {
  return table == nullptr;
}

Span Reader::span(kj::StringPtr key) const {
  KJ_IF_MAYBE(t, table) {
    KJ_IF_MAYBE(value, valueAt(*t, key)) return value->span;
  }
  return place;
}

Span Reader::span() const {
  return place;
}

void Reader::error(kj::StringPtr key, kj::StringPtr message, kj::StringPtr help,
    kj::ArrayPtr<const kj::StringPtr> others) {
  if (table == nullptr) return;
  auto& t = KJ_ASSERT_NONNULL(table);
  bool isAllWritten = true;
  // Whether the error may follow from a mistake in the key `each`.
  auto mayFollowFrom = [&](kj::StringPtr each) {
    if (valueAt(t, each) != nullptr) return isRight(each);
    isAllWritten = false;
    // The text that could not be read may contain the key.
    if (!complete) return false;
    // The table that would hold the key has already been read, unless it is this one: see finish().
    KJ_IF_MAYBE(dot, each.findLast('.')) {
      KJ_IF_MAYBE(parent, valueAt(t, kj::heapString(each.slice(0, *dot)))) {
        return !hasUnknownKey(sink.diagnostics, *parent);
      }
    }
    return true;
  };
  KJ_IF_MAYBE(value, valueAt(t, key)) {
    // One error is enough for a value. Different parts of a table or list may each have one.
    bool isScalar = !value->content.is<Table>() && !value->content.is<List>();
    if (isScalar && sink.diagnostics.hasErrorIn(value->span)) return;
  } else if (!mayFollowFrom(key)) {
    return;
  }
  for (auto& each: others) {
    if (!mayFollowFrom(each)) return;
  }
  sink.diagnostics.error(span(key), message, help, isAllWritten ? 0 : allKnown);
}

void Reader::refuse(kj::StringPtr key, kj::StringPtr message, kj::StringPtr help,
    kj::ArrayPtr<const kj::StringPtr> others) {
  for (auto& each: known) {
    if (each.key == key && each.isRead) return;
  }
  if (!has(key)) return;
  note(key, true);
  error(key, message, help, others);
}

Diagnostics& Reader::diagnostics() {
  return sink.diagnostics;
}

void Reader::describe(
    kj::StringPtr key, kj::StringPtr type, kj::StringPtr defaultValue, kj::StringPtr doc) {
  KJ_IF_MAYBE(m, manual) {
    m->section(manualSection).addRow(key, type, defaultValue, doc);
  }
}

kj::String Reader::printRoot(kj::StringPtr title, kj::StringPtr intro, ReadTable read) {
  Manual manual;
  auto section = manual.addSection(0, kj::str(title), kj::str(intro));
  Reader reader(manual, section, kj::str());
  read(reader);
  return manual.toString();
}

}  // namespace configs
