// Getters of numbers, flags, texts, and lists of them.
#include "configs/language/reader.h"

#include <cmath>

namespace configs {

namespace {

kj::String code(const Value& value) {
  return kj::str("`", print(value), "`");
}

// Returns the text of `value` in its source, which has one line.
kj::ArrayPtr<const char> givenText(const Value& value) {
  Line line(*value.span.source, value.span.line);
  size_t begin = line.byteAt(value.span.column), end = line.byteAt(value.span.endColumn);
  return value.span.source->text.slice(begin, end);
}

// Returns the help for a list in an option whose key takes one value: several values for `--sweep`
// need no brackets. Empty for a list in a list.
kj::String helpForList(const Value& value) {
  auto given = givenText(value);
  auto& text = value.span.source->text;
  auto before = kj::heapString(text.begin(), given.begin() - text.begin());
  if (given.end() != text.end() || before.findFirst('[') != nullptr) return kj::str();
  return kj::str(
      "for one run per value, write --sweep '", before, given.slice(1, given.size() - 1), "'");
}

// Returns the help for a `value` in quotes that should be `wanted` ("a number") without quotes. On
// a command line a word without quotes is a string too, and removing quotes does not help.
kj::String helpWithoutQuotes(const Value& value, kj::StringPtr wanted) {
  auto help = kj::str("write ", wanted, " without quotes");
  if (value.content.is<List>() && isOnCommandLine(value.span)) return helpForList(value);
  if (!value.content.is<kj::String>()) return kj::str();
  if (!isOnCommandLine(value.span)) return help;
  auto given = givenText(value);
  if (given.size() == 0) return kj::str("write ", wanted, " after the `=`");
  if (given[0] == '"' || given[0] == '\'') return help;
  return kj::str("`", given, "` is not ", wanted);
}

// Returns the help for a `value` that should be a string.
kj::String helpForString(const Value& value) {
  if (!isOnCommandLine(value.span)) return kj::str("write the string in quotes");
  // The shell removes one pair of quotes.
  auto& source = *value.span.source;
  auto given = givenText(value);
  auto before = kj::arrayPtr(source.text.begin(), given.begin());
  auto behind = kj::arrayPtr(given.end(), source.text.end());
  auto option = source.name.slice(0, source.name.findFirst(' ').orDefault(source.name.size()));
  return kj::str(
      "write ", option, " '", before, "\"…\"", behind, "'. The shell removes the outer quotes");
}

}  // namespace

// -------------------------------------------------------------------------------------------------
// Numbers.

int64_t Reader::numberOf(
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

double Reader::numberOf(
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
      value.span, kj::str("`", name, "` must be a ", std::isfinite(result) ? "" : "finite ",
                      typeOf(limits), ", not ", print(value)));
  return fallback.orDefault(clamp(limits, result));
}

template <typename T, typename Limits>
T Reader::number(kj::StringPtr key, kj::StringPtr doc, Limits limits) {
  describe(key, typeOf(limits), "required", doc);
  T result = lowest(limits);
  KJ_IF_MAYBE(value, find(key)) {
    result = numberOf(key, *value, limits, nullptr);
  } else {
    missing(key, typeOf(limits), doc);
  }
  keep(key, newValue(result));
  return result;
}

template <typename T, typename Limits>
T Reader::number(kj::StringPtr key, kj::StringPtr doc, Limits limits, T defaultValue) {
  KJ_REQUIRE(allows(limits, defaultValue), "the default must be allowed", key, defaultValue);
  describe(key, typeOf(limits), code(*newValue(defaultValue)), doc);
  T result = defaultValue;
  KJ_IF_MAYBE(value, find(key)) {
    result = numberOf(key, *value, limits, defaultValue);
  }
  keep(key, newValue(result));
  return result;
}

template <typename T, typename Limits>
kj::Maybe<T> Reader::maybeNumber(kj::StringPtr key, kj::StringPtr doc, Limits limits) {
  describe(key, typeOf(limits), "none", doc);
  KJ_IF_MAYBE(value, find(key)) {
    T result = numberOf(key, *value, limits, nullptr);
    keep(key, newValue(result));
    return result;
  }
  return nullptr;
}

int64_t Reader::integer(kj::StringPtr key, kj::StringPtr doc, IntegerLimits limits) {
  return number<int64_t>(key, doc, limits);
}

int64_t Reader::integer(
    kj::StringPtr key, kj::StringPtr doc, IntegerLimits limits, int64_t defaultValue) {
  return number(key, doc, limits, defaultValue);
}

kj::Maybe<int64_t> Reader::maybeInteger(
    kj::StringPtr key, kj::StringPtr doc, IntegerLimits limits) {
  return maybeNumber<int64_t>(key, doc, limits);
}

double Reader::real(kj::StringPtr key, kj::StringPtr doc, RealLimits limits) {
  return number<double>(key, doc, limits);
}

double Reader::real(kj::StringPtr key, kj::StringPtr doc, RealLimits limits, double defaultValue) {
  return number(key, doc, limits, defaultValue);
}

kj::Maybe<double> Reader::maybeReal(kj::StringPtr key, kj::StringPtr doc, RealLimits limits) {
  return maybeNumber<double>(key, doc, limits);
}

// -------------------------------------------------------------------------------------------------
// Flags, texts and lists.

bool Reader::flag(kj::StringPtr key, kj::StringPtr doc, bool defaultValue) {
  describe(key, "boolean", defaultValue ? "`true`" : "`false`", doc);
  bool result = defaultValue;
  KJ_IF_MAYBE(value, find(key)) result = flagOf(key, *value, defaultValue);
  keep(key, newValue(result));
  return result;
}

kj::Maybe<bool> Reader::maybeFlag(kj::StringPtr key, kj::StringPtr doc) {
  describe(key, "boolean", "none", doc);
  KJ_IF_MAYBE(value, find(key)) {
    bool result = flagOf(key, *value, false);
    keep(key, newValue(result));
    return result;
  }
  return nullptr;
}

bool Reader::flagOf(kj::StringPtr key, const Value& value, bool otherwise) {
  if (value.content.is<bool>()) return value.content.get<bool>();
  wrongType(key, value, "a boolean", "write `true` or `false`, without quotes");
  return otherwise;
}

kj::OneOf<bool, kj::String> Reader::flagOrWord(
    kj::StringPtr key, kj::StringPtr doc, kj::StringPtr word, bool defaultValue) {
  auto both = kj::str("a boolean or `\"", word, "\"`");
  describe(key, kj::str("boolean or `\"", word, "\"`"), defaultValue ? "`true`" : "`false`", doc);
  bool flag = defaultValue;
  KJ_IF_MAYBE(value, find(key)) {
    auto& content = value->content;
    if (content.is<kj::String>() && content.get<kj::String>() == word) {
      keep(key, newValue(kj::str(word)));
      return kj::str(word);
    }
    if (content.is<bool>()) {
      flag = content.get<bool>();
    } else if (content.is<kj::String>()) {
      auto& given = content.get<kj::String>();
      sink.diagnostics.error(value->span, kj::str("`", given, "` is not a known `", key, "`"),
          kj::str("write `true`, `false` or `\"", word, "\"`"));
    } else {
      wrongType(key, *value, both);
    }
  }
  keep(key, newValue(flag));
  return flag;
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

kj::Maybe<kj::String> Reader::maybeTextOrInteger(kj::StringPtr key, kj::StringPtr doc) {
  describe(key, "string or integer", "none", doc);
  KJ_IF_MAYBE(value, find(key)) {
    auto& content = value->content;
    auto result = content.is<int64_t>() ? kj::str(content.get<int64_t>()) : textOf(key, *value);
    keep(key, newValue(kj::str(result)));
    return kj::mv(result);
  }
  return nullptr;
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

template <typename T, typename Limits>
kj::Array<T> Reader::numbers(
    kj::StringPtr key, kj::StringPtr doc, Limits limits, kj::StringPtr example) {
  describe(key, kj::str("list, each ", typeOf(limits)), "`[]`", doc);
  kj::Vector<T> result;
  KJ_IF_MAYBE(value, find(key)) {
    eachOf(key, *value, example, [&](kj::StringPtr name, const Value& element, List& resolved) {
      result.add(numberOf(name, element, limits, nullptr));
      resolved.add(newValue(result.back()));
    });
  }
  return result.releaseAsArray();
}

kj::Array<int64_t> Reader::integers(kj::StringPtr key, kj::StringPtr doc, IntegerLimits limits) {
  return numbers<int64_t>(key, doc, limits, "[1, 2]");
}

kj::Array<double> Reader::reals(kj::StringPtr key, kj::StringPtr doc, RealLimits limits) {
  return numbers<double>(key, doc, limits, "[0.1, 0.2]");
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
        numbers.add(numberOf(name, element, limits, nullptr));
        resolved.add(newValue(numbers.back()));
      });
    } else if (content.is<kj::String>()) {
      auto& given = content.get<kj::String>();
      sink.diagnostics.error(value->span, kj::str("`", given, "` is not a known `", key, "`"),
          kj::str("it must be ", both, " of numbers"));
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
