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

bool putAt(Table& root, kj::StringPtr key, Span keySpan, const Value& value) {
  auto dot = key.findFirst('.').orDefault(key.size());
  auto name = kj::heapString(key.slice(0, dot));
  bool last = dot == key.size();
  KJ_IF_MAYBE(entry, root.find(name)) {
    auto& content = entry->value->content;
    if (!last) {
      return content.is<Table>() && putAt(content.get<Table>(), key.slice(dot + 1), keySpan, value);
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
