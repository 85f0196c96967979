// Functions that walk a tree of values: copies, dotted keys, leaves.
#include "configs/language/document.h"

namespace configs {

kj::Maybe<const Entry&> Table::find(kj::StringPtr key) const {
  for (auto& entry: entries) {
    if (entry.key == key) return entry;
  }
  return nullptr;
}

kj::Maybe<Entry&> Table::find(kj::StringPtr key) {
  for (auto& entry: entries) {
    if (entry.key == key) return entry;
  }
  return nullptr;
}

kj::Own<Value> clone(const Value& value) {
  auto result = kj::heap<Value>();
  result->span = value.span;
  KJ_SWITCH_ONEOF(value.content) {
    KJ_CASE_ONEOF(flag, bool) result->content = flag;
    KJ_CASE_ONEOF(integer, int64_t) result->content = integer;
    KJ_CASE_ONEOF(real, double) result->content = real;
    KJ_CASE_ONEOF(text, kj::String) result->content = kj::str(text);
    KJ_CASE_ONEOF(list, List) {
      List copy;
      for (auto& element: list) copy.add(clone(*element));
      result->content = kj::mv(copy);
    }
    KJ_CASE_ONEOF(table, Table) result->content = clone(table);
  }
  return result;
}

Table clone(const Table& table) {
  Table copy;
  copy.span = table.span;
  for (auto& entry: table.entries) {
    copy.entries.add(Entry{kj::str(entry.key), entry.keySpan, clone(*entry.value)});
  }
  return copy;
}

kj::Maybe<const Value&> valueAt(const Table& root, kj::StringPtr key) {
  auto dot = key.findFirst('.').orDefault(key.size());
  KJ_IF_MAYBE(entry, root.find(kj::heapString(key.slice(0, dot)))) {
    if (dot == key.size()) return *entry->value;
    if (entry->value->content.is<Table>()) {
      return valueAt(entry->value->content.get<Table>(), key.slice(dot + 1));
    }
  }
  return nullptr;
}

namespace {

// Whether `a` and `b` both have a `kind`, and these differ.
bool differInKind(const Table& a, const Table& b) {
  KJ_IF_MAYBE(ours, a.find("kind")) {
    KJ_IF_MAYBE(theirs, b.find("kind")) {
      auto& x = ours->value->content;
      auto& y = theirs->value->content;
      return x.is<kj::String>() && y.is<kj::String>() && x.get<kj::String>() != y.get<kj::String>();
    }
  }
  return false;
}

// Whether only dotted keys make the table of `entry`, as in `optimizer.kind = "adam"`. Such a table
// begins where its key does. Other tables begin at a bracket or a brace.
bool isDotted(const Entry& entry) {
  auto& table = entry.value->span;
  return table.line == entry.keySpan.line && table.column == entry.keySpan.column;
}

}  // namespace

void lay(Table over, Table& under, HeaderOf header) {
  if (header == HeaderOf::OVER) under.span = over.span;
  for (auto& entry: over.entries) {
    KJ_IF_MAYBE(below, under.find(entry.key)) {
      auto& content = entry.value->content;
      bool areTables = content.is<Table>() && below->value->content.is<Table>();
      // The keys of another kind would be unknown in the upper table. A dotted key says that only
      // this value changes.
      if (areTables && (isDotted(entry) || !differInKind(content.get<Table>(),
                                               below->value->content.get<Table>()))) {
        lay(kj::mv(content.get<Table>()), below->value->content.get<Table>(), header);
        if (header == HeaderOf::UNDER) continue;
        below->value->span = entry.value->span;
      } else {
        below->value = kj::mv(entry.value);
      }
      below->keySpan = entry.keySpan;
    } else {
      under.entries.add(kj::mv(entry));
    }
  }
}

bool putAt(Table& root, kj::StringPtr key, Span keySpan, const Value& value) {
  auto dot = key.findFirst('.').orDefault(key.size());
  auto name = kj::heapString(key.slice(0, dot));
  bool last = dot == key.size();
  KJ_IF_MAYBE(entry, root.find(name)) {
    auto& content = entry->value->content;
    if (!last) {
      return content.is<Table>() && putAt(content.get<Table>(), key.slice(dot + 1), keySpan, value);
    }
    bool areTables = content.is<Table>() && value.content.is<Table>();
    if (areTables && !differInKind(value.content.get<Table>(), content.get<Table>())) {
      lay(clone(value.content.get<Table>()), content.get<Table>(), HeaderOf::UNDER);
      return true;
    }
    entry->keySpan = keySpan;
    entry->value = clone(value);
    return true;
  }
  auto made = kj::heap<Value>();
  if (last) {
    made = clone(value);
  } else {
    Table table;
    table.span = keySpan;
    putAt(table, key.slice(dot + 1), keySpan, value);
    made->span = keySpan;
    made->content = kj::mv(table);
  }
  root.entries.add(Entry{kj::mv(name), keySpan, kj::mv(made)});
  return true;
}

namespace {

void addLeaves(kj::StringPtr prefix, kj::ArrayPtr<const Entry> entries, kj::Vector<Entry>& leaves) {
  for (auto& entry: entries) {
    auto key = kj::str(prefix, entry.key);
    auto& content = entry.value->content;
    if (content.is<Table>()) {
      addLeaves(kj::str(key, "."), content.get<Table>().entries, leaves);
    } else {
      leaves.add(Entry{kj::mv(key), entry.keySpan, clone(*entry.value)});
    }
  }
}

}  // namespace

kj::Vector<Entry> leavesOf(kj::ArrayPtr<const Entry> entries) {
  kj::Vector<Entry> leaves;
  addLeaves("", entries, leaves);
  return leaves;
}

}  // namespace configs
