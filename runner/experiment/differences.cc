#include "runner/experiment/differences.h"

#include <kj/debug.h>
#include <kj/map.h>
#include <kj/vector.h>
#include <string.h>

#include <algorithm>

#include "runner/experiment/shown_experiment.h"

namespace runner {

namespace {

// The longest list that is written in a cell of a table or a part of a label.
constexpr size_t LIST_BYTES_MAX = 40;

// Dotted keys with their values, in the order of the text.
struct Leaves {
  kj::Vector<kj::String> keys;
  kj::HashMap<kj::String, kj::String> values;

  kj::String valueOf(kj::StringPtr key) const {
    KJ_IF_MAYBE(value, values.find(key)) return kj::str(*value);
    return nullptr;
  }
};

// Null if the text is empty or cannot be read.
kj::Maybe<Leaves> leavesOf(kj::StringPtr text) {
  configs::Diagnostics diagnostics;
  auto document = configs::parse("experiment.toml", text, diagnostics);
  if (text.size() == 0 || diagnostics.count() > 0) return nullptr;
  Leaves leaves;
  for (auto& entry: configs::leavesOf(document->root.entries)) {
    if (entry.key.startsWith("expect.") || entry.key.startsWith("published.")) continue;
    leaves.values.insert(kj::str(entry.key), shortValue(*entry.value));
    leaves.keys.add(kj::mv(entry.key));
  }
  return kj::mv(leaves);
}

// Returns the values of one key without secrets. If one of them is a list that is too long, returns
// numbers instead of lists.
kj::Array<kj::String> valuesOf(kj::StringPtr key, kj::ArrayPtr<const Leaves* const> all) {
  auto values = KJ_MAP(leaves, all) {
    return withoutSecretsOfValue(leaves->valueOf(key));
  };
  bool tooLong = false;
  for (auto& value: values) {
    tooLong = tooLong || (value.startsWith("[") && value.size() > LIST_BYTES_MAX);
  }
  if (!tooLong) return values;
  kj::HashMap<kj::String, kj::uint> numbers;
  for (auto& value: values) {
    if (value.size() == 0) continue;
    auto& number = numbers.findOrCreate(value, [&]() -> kj::HashMap<kj::String, kj::uint>::Entry {
      return {kj::str(value), kj::uint(numbers.size()) + 1};
    });
    value = kj::str(number);
  }
  return values;
}

kj::StringPtr lastWord(kj::StringPtr key) {
  KJ_IF_MAYBE(dot, key.findLast('.')) return key.slice(*dot + 1);
  return key;
}

}  // namespace

kj::Array<kj::String> shortKeys(kj::ArrayPtr<const kj::StringPtr> keys) {
  return KJ_MAP(key, keys) {
    kj::uint alike = 0;
    for (auto other: keys) alike += lastWord(other) == lastWord(key);
    return kj::str(alike > 1 ? key : lastWord(key));
  };
}

kj::String shortValue(const configs::Value& value) {
  if (value.content.is<kj::String>()) return kj::str(value.content.get<kj::String>());
  auto text = configs::print(value);
  bool isWholeReal = value.content.is<double>() && text.endsWith(".0");
  return isWholeReal ? kj::heapString(text.slice(0, text.size() - 2)) : kj::mv(text);
}

kj::Array<size_t> orderIn(kj::StringPtr label, kj::ArrayPtr<const kj::String> keys) {
  KJ_IF_MAYBE(slash, label.findLast('/')) label = label.slice(*slash + 1);
  auto text = kj::str(",", label);
  auto places = KJ_MAP(key, keys)->size_t {
    auto place = strstr(text.cStr(), kj::str(",", key, "=").cStr());
    return place == nullptr ? size_t(kj::maxValue) : place - text.begin();
  };
  auto order = KJ_MAP(k, kj::indices(keys))->size_t {
    return k;
  };
  std::stable_sort(
      order.begin(), order.end(), [&](size_t a, size_t b) { return places[a] < places[b]; });
  return order;
}

kj::String firstDifferences(kj::StringPtr there, kj::StringPtr here) {
  constexpr size_t NAMED = 3;
  auto ofThere = leavesOf(there), ofHere = leavesOf(here);
  if (ofThere == nullptr || ofHere == nullptr) return kj::str();
  auto& first = KJ_ASSERT_NONNULL(ofThere);
  auto& second = KJ_ASSERT_NONNULL(ofHere);
  kj::Vector<kj::String> all;
  auto add = [&](kj::StringPtr key) {
    if (first.valueOf(key) == second.valueOf(key)) return;
    auto a = withoutSecretsOfValue(first.valueOf(key));
    auto b = withoutSecretsOfValue(second.valueOf(key));
    auto inWords = [](const kj::String& value) {
      return value.size() == 0 ? kj::str("absent") : kj::str(value);
    };
    bool isShort = a.size() <= LIST_BYTES_MAX && b.size() <= LIST_BYTES_MAX && a != b;
    all.add(isShort ? kj::str(key, " is ", inWords(a), ", not ", inWords(b))
                    : kj::str(key, " differs"));
  };
  for (auto& key: first.keys) add(key);
  for (auto& key: second.keys) {
    if (first.values.find(key) == nullptr) add(key);
  }
  if (all.size() <= NAMED) return kj::strArray(all, "; ");
  return kj::str(kj::strArray(all.slice(0, NAMED), "; "), "; … (", all.size(), " keys in all)");
}

Differences differencesOf(kj::ArrayPtr<const kj::StringPtr> experiments) {
  auto texts = KJ_MAP(text, experiments) {
    return leavesOf(text);
  };
  kj::Vector<const Leaves*> all;
  for (auto& text: texts) {
    KJ_IF_MAYBE(leaves, text) all.add(leaves);
  }
  kj::Vector<kj::StringPtr> differing;
  kj::HashSet<kj::StringPtr> seen;
  for (auto leaves: all) {
    for (auto& key: leaves->keys) {
      if (seen.contains(key)) continue;
      seen.insert(key);
      bool differs = false;
      for (auto other: all) differs = differs || other->valueOf(key) != leaves->valueOf(key);
      if (differs) differing.add(key);
    }
  }
  auto columns = KJ_MAP(key, differing) {
    return valuesOf(key, all);
  };
  Differences result;
  result.keys = shortKeys(differing);
  size_t row = 0;
  result.values = KJ_MAP(text, texts) {
    if (text == nullptr) return kj::Array<kj::String>();
    auto values = KJ_MAP(column, columns) {
      return kj::mv(column[row]);
    };
    ++row;
    return values;
  };
  return result;
}

}  // namespace runner
