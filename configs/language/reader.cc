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

kj::String code(const Value& value) {
  return kj::str("`", print(value), "`");
}

// The way out for `value` where `wanted` ("a number") stands without quotes. In a `--set` a word
// without quotes is a string too: taking quotes away is no way out there.
kj::String helpWithoutQuotes(const Value& value, kj::StringPtr wanted) {
  auto help = kj::str(wanted, " stands without quotes");
  if (!value.content.is<kj::String>()) return kj::str();
  if (!isOverride(value.span)) return help;
  Line line(*value.span.source, value.span.line);
  auto given = line.text().slice(line.byteAt(value.span.column) - line.begin(), line.text().size());
  if (given.size() == 0) return kj::str("write ", wanted, " behind the `=`");
  if (given[0] == '"' || given[0] == '\'') return help;
  return kj::str("`", given, "` is not ", wanted);
}

// The way out for `value` where a string is wanted.
kj::String helpForString(const Value& value) {
  if (!isOverride(value.span)) return kj::str("a string stands in quotes");
  // The shell takes one pair of quotes away.
  Line line(*value.span.source, value.span.line);
  auto key = line.text().slice(0, line.byteAt(value.span.column) - line.begin());
  return kj::str("write --set '", key, "\"…\"': the shell takes the outer quotes away");
}

}  // namespace

// -------------------------------------------------------------------------------------------------
// What all getters share.

Reader::Reader(const Table& table, Span place, Sink sink, kj::String path, bool complete)
    : table(table), sink(sink), place(place), path(kj::mv(path)), complete(complete) {}

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
  bool isKnown = false;
  for (auto other: known) isKnown = isKnown || other == key;
  if (!isKnown) known.add(key);
  KJ_IF_MAYBE(t, table) {
    KJ_IF_MAYBE(entry, t->find(key)) {
      return *entry->value;
    }
  }
  return nullptr;
}

void Reader::missing(kj::StringPtr key, kj::StringPtr type, kj::StringPtr doc) {
  if (table == nullptr || !complete) return;
  auto where = path.size() > 0 ? kj::str(" in [", path, "]") : kj::str();
  sink.diagnostics.error(place, kj::str("missing key `", key, "`", where),
      kj::str("add `", key, " = …` (", type, "): ", doc));
}

void Reader::wrongType(
    kj::StringPtr name, const Value& value, kj::StringPtr expected, kj::StringPtr help) {
  // A value without content has been reported where it was read.
  if (value.content == nullptr) return;
  sink.diagnostics.error(
      value.span, kj::str("`", name, "` is ", expected, ", not ", nameOf(value)), help);
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
    for (auto& entry: t->entries) {
      bool isKnown = false;
      for (auto key: known) isKnown = isKnown || key == entry.key;
      if (isKnown) continue;
      auto where = path.size() > 0 ? kj::str("in [", path, "]") : kj::str("at the top level");
      sink.diagnostics.error(entry.keySpan, kj::str("unknown key `", entry.key, "` ", where),
          suggest(entry.key, known));
    }
  }
}

bool Reader::has(kj::StringPtr key) const {
  KJ_IF_MAYBE(t, table) {
    return t->find(key) != nullptr;
  }
  return false;
}

bool Reader::isManual() const {
  return table == nullptr;
}

Span Reader::span(kj::StringPtr key) const {
  KJ_IF_MAYBE(t, table) {
    KJ_IF_MAYBE(entry, t->find(key)) {
      return entry->value->span;
    }
  }
  return place;
}

Span Reader::span() const {
  return place;
}

void Reader::error(kj::StringPtr key, kj::StringPtr message, kj::StringPtr help) {
  sink.diagnostics.error(span(key), message, help);
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

kj::String Reader::printRoot(kj::StringPtr title, ReadTable read) {
  Manual manual;
  auto section = manual.addSection(0, kj::str(title), kj::str());
  Reader reader(manual, section, kj::str());
  read(reader);
  return manual.toString();
}

// -------------------------------------------------------------------------------------------------
// Numbers.

int64_t Reader::integerOf(
    kj::StringPtr name, const Value& value, IntegerLimits limits, kj::Maybe<int64_t> fallback) {
  if (!value.content.is<int64_t>()) {
    wrongType(name, value, "an integer", helpWithoutQuotes(value, "a number"));
    return fallback.orDefault(lowest(limits));
  }
  int64_t result = value.content.get<int64_t>();
  if (allows(limits, result)) return result;
  sink.diagnostics.error(
      value.span, kj::str("`", name, "` must be an ", typeOf(limits), ", not ", result));
  return fallback.orDefault(clamp(limits, result));
}

double Reader::realOf(
    kj::StringPtr name, const Value& value, RealLimits limits, kj::Maybe<double> fallback) {
  double result;
  if (value.content.is<double>()) {
    result = value.content.get<double>();
  } else if (value.content.is<int64_t>()) {
    result = value.content.get<int64_t>();
  } else {
    wrongType(name, value, "a number", helpWithoutQuotes(value, "a number"));
    return fallback.orDefault(lowest(limits));
  }
  if (allows(limits, result)) return result;
  sink.diagnostics.error(
      value.span, kj::str("`", name, "` must be a ", typeOf(limits), ", not ", print(value)));
  return fallback.orDefault(clamp(limits, result));
}

int64_t Reader::integer(kj::StringPtr key, kj::StringPtr doc, IntegerLimits limits) {
  describe(key, typeOf(limits), "required", doc);
  int64_t result = lowest(limits);
  KJ_IF_MAYBE(value, find(key)) {
    result = integerOf(key, *value, limits, nullptr);
  } else {
    missing(key, typeOf(limits), doc);
  }
  keep(key, newValue(result));
  return result;
}

int64_t Reader::integer(
    kj::StringPtr key, kj::StringPtr doc, IntegerLimits limits, int64_t defaultValue) {
  KJ_REQUIRE(allows(limits, defaultValue), "the default must be allowed", key, defaultValue);
  describe(key, typeOf(limits), kj::str("`", defaultValue, "`"), doc);
  int64_t result = defaultValue;
  KJ_IF_MAYBE(value, find(key)) {
    result = integerOf(key, *value, limits, defaultValue);
  }
  keep(key, newValue(result));
  return result;
}

kj::Maybe<int64_t> Reader::maybeInteger(
    kj::StringPtr key, kj::StringPtr doc, IntegerLimits limits) {
  describe(key, typeOf(limits), "none", doc);
  KJ_IF_MAYBE(value, find(key)) {
    int64_t result = integerOf(key, *value, limits, nullptr);
    keep(key, newValue(result));
    return result;
  }
  return nullptr;
}

double Reader::real(kj::StringPtr key, kj::StringPtr doc, RealLimits limits) {
  describe(key, typeOf(limits), "required", doc);
  double result = lowest(limits);
  KJ_IF_MAYBE(value, find(key)) {
    result = realOf(key, *value, limits, nullptr);
  } else {
    missing(key, typeOf(limits), doc);
  }
  keep(key, newValue(result));
  return result;
}

double Reader::real(kj::StringPtr key, kj::StringPtr doc, RealLimits limits, double defaultValue) {
  KJ_REQUIRE(allows(limits, defaultValue), "the default must be allowed", key, defaultValue);
  describe(key, typeOf(limits), code(*newValue(defaultValue)), doc);
  double result = defaultValue;
  KJ_IF_MAYBE(value, find(key)) {
    result = realOf(key, *value, limits, defaultValue);
  }
  keep(key, newValue(result));
  return result;
}

kj::Maybe<double> Reader::maybeReal(kj::StringPtr key, kj::StringPtr doc, RealLimits limits) {
  describe(key, typeOf(limits), "none", doc);
  KJ_IF_MAYBE(value, find(key)) {
    double result = realOf(key, *value, limits, nullptr);
    keep(key, newValue(result));
    return result;
  }
  return nullptr;
}

// -------------------------------------------------------------------------------------------------
// Flags, texts and lists.

bool Reader::flag(kj::StringPtr key, kj::StringPtr doc, bool defaultValue) {
  describe(key, "boolean", defaultValue ? "`true`" : "`false`", doc);
  bool result = defaultValue;
  KJ_IF_MAYBE(value, find(key)) {
    if (value->content.is<bool>()) {
      result = value->content.get<bool>();
    } else {
      wrongType(key, *value, "a boolean", "write `true` or `false`, without quotes");
    }
  }
  keep(key, newValue(result));
  return result;
}

kj::String Reader::textOf(kj::StringPtr name, const Value& value) {
  if (value.content.is<kj::String>()) return kj::str(value.content.get<kj::String>());
  wrongType(name, value, "a string", helpForString(value));
  return kj::str();
}

kj::String Reader::text(kj::StringPtr key, kj::StringPtr doc) {
  describe(key, "string", "required", doc);
  kj::String result;
  KJ_IF_MAYBE(value, find(key)) {
    result = textOf(key, *value);
  } else {
    missing(key, "string", doc);
  }
  keep(key, newValue(kj::str(result)));
  return result;
}

kj::String Reader::text(kj::StringPtr key, kj::StringPtr doc, kj::StringPtr defaultValue) {
  describe(key, "string", code(*newValue(kj::str(defaultValue))), doc);
  auto result = kj::str(defaultValue);
  KJ_IF_MAYBE(value, find(key)) {
    auto given = textOf(key, *value);
    if (value->content.is<kj::String>()) result = kj::mv(given);
  }
  keep(key, newValue(kj::str(result)));
  return result;
}

kj::Maybe<kj::String> Reader::maybeText(kj::StringPtr key, kj::StringPtr doc) {
  describe(key, "string", "none", doc);
  KJ_IF_MAYBE(value, find(key)) {
    auto result = textOf(key, *value);
    keep(key, newValue(kj::str(result)));
    return kj::mv(result);
  }
  return nullptr;
}

void Reader::eachOf(kj::StringPtr key, const Value& value, kj::StringPtr example,
    kj::FunctionParam<void(kj::StringPtr name, const Value& element, List& resolved)> each) {
  if (!value.content.is<List>()) {
    wrongType(key, value, "a list", kj::str("write `", key, " = ", example, "`"));
    return;
  }
  List resolved;
  auto& list = value.content.get<List>();
  for (size_t i: kj::indices(list)) each(kj::str(key, "[", i, "]"), *list[i], resolved);
  keep(key, newValue(kj::mv(resolved)));
}

kj::Array<int64_t> Reader::integers(kj::StringPtr key, kj::StringPtr doc, IntegerLimits limits) {
  describe(key, kj::str("list, each ", typeOf(limits)), "`[]`", doc);
  kj::Vector<int64_t> result;
  KJ_IF_MAYBE(value, find(key)) {
    eachOf(key, *value, "[1, 2]", [&](kj::StringPtr name, const Value& element, List& resolved) {
      result.add(integerOf(name, element, limits, nullptr));
      resolved.add(newValue(result.back()));
    });
  }
  return result.releaseAsArray();
}

kj::Array<double> Reader::reals(kj::StringPtr key, kj::StringPtr doc, RealLimits limits) {
  describe(key, kj::str("list, each ", typeOf(limits)), "`[]`", doc);
  kj::Vector<double> result;
  KJ_IF_MAYBE(value, find(key)) {
    eachOf(
        key, *value, "[0.1, 0.2]", [&](kj::StringPtr name, const Value& element, List& resolved) {
          result.add(realOf(name, element, limits, nullptr));
          resolved.add(newValue(result.back()));
        });
  }
  return result.releaseAsArray();
}

kj::OneOf<kj::String, kj::Array<double>> Reader::wordOrReals(
    kj::StringPtr key, kj::StringPtr doc, kj::StringPtr word, RealLimits limits) {
  auto both = kj::str("`\"", word, "\"` or a list");
  describe(key, kj::str(both, ", each ", typeOf(limits)), "`[]`", doc);
  kj::Vector<double> numbers;
  KJ_IF_MAYBE(value, find(key)) {
    auto& content = value->content;
    if (content.is<kj::String>() && content.get<kj::String>() == word) {
      keep(key, newValue(kj::str(word)));
      return kj::str(word);
    }
    if (content.is<List>()) {
      eachOf(key, *value, "", [&](kj::StringPtr name, const Value& element, List& resolved) {
        numbers.add(realOf(name, element, limits, nullptr));
        resolved.add(newValue(numbers.back()));
      });
    } else if (content.is<kj::String>()) {
      auto& given = content.get<kj::String>();
      sink.diagnostics.error(value->span, kj::str("`", given, "` is not a known `", key, "`"),
          kj::str("it is ", both, " of numbers"));
    } else {
      wrongType(key, *value, kj::str(both, " of numbers"));
    }
  }
  return numbers.releaseAsArray();
}

kj::Array<kj::String> Reader::texts(kj::StringPtr key, kj::StringPtr doc) {
  describe(key, "list of strings", "`[]`", doc);
  kj::Vector<kj::String> result;
  KJ_IF_MAYBE(value, find(key)) {
    eachOf(key, *value, "[\"…\"]", [&](kj::StringPtr name, const Value& element, List& resolved) {
      result.add(textOf(name, element));
      resolved.add(newValue(kj::str(result.back())));
    });
  }
  return result.releaseAsArray();
}

kj::Array<kj::String> Reader::texts(
    kj::StringPtr key, kj::StringPtr doc, kj::ArrayPtr<const kj::StringPtr> defaultValue) {
  List list;
  for (auto text: defaultValue) list.add(newValue(kj::str(text)));
  auto value = newValue(kj::mv(list));
  describe(key, "list of strings", kj::str("`", print(*value), "`"), doc);
  kj::Vector<kj::String> result;
  auto add = [&](kj::StringPtr name, const Value& element, List& resolved) {
    result.add(textOf(name, element));
    resolved.add(newValue(kj::str(result.back())));
  };
  bool given = false;
  KJ_IF_MAYBE(found, find(key)) {
    eachOf(key, *found, "[\"…\"]", add);
    given = found->content.is<List>();
  }
  if (!given) eachOf(key, *value, "", add);
  return result.releaseAsArray();
}

}  // namespace configs
