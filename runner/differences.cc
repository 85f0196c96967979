#include "runner/differences.h"

#include <kj/map.h>
#include <kj/vector.h>

#include "configs/language/document.h"

namespace runner {

namespace {

// Dotted keys with their values, in the order of the text.
struct Leaves {
  kj::Vector<kj::String> keys;
  kj::HashMap<kj::String, kj::String> values;

  void add(const configs::Table& table, kj::StringPtr path) {
    for (auto& entry: table.entries) {
      if (path.size() == 0 && (entry.key == "expect" || entry.key == "published")) continue;
      auto key = path.size() == 0 ? kj::str(entry.key) : kj::str(path, ".", entry.key);
      auto& content = entry.value->content;
      if (content.is<configs::Table>()) {
        add(content.get<configs::Table>(), key);
        continue;
      }
      keys.add(kj::str(key));
      values.insert(kj::mv(key), content.is<kj::String>() ? kj::str(content.get<kj::String>())
                                                          : configs::print(*entry.value));
    }
  }

  kj::String valueOf(kj::StringPtr key) const {
    KJ_IF_MAYBE(value, values.find(key)) return kj::str(*value);
    return nullptr;
  }
};

Leaves leavesOf(kj::StringPtr text) {
  configs::Diagnostics diagnostics;
  auto document = configs::parse("experiment.toml", text, diagnostics);
  Leaves leaves;
  leaves.add(document->root, "");
  return leaves;
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

Differences differencesOf(kj::ArrayPtr<const kj::StringPtr> experiments) {
  auto all = KJ_MAP(text, experiments) {
    return leavesOf(text);
  };
  kj::Vector<kj::StringPtr> differing;
  kj::HashSet<kj::StringPtr> seen;
  for (auto& leaves: all) {
    for (auto& key: leaves.keys) {
      if (seen.contains(key)) continue;
      seen.insert(key);
      bool differs = false;
      for (auto& other: all) differs = differs || other.valueOf(key) != leaves.valueOf(key);
      if (differs) differing.add(key);
    }
  }
  Differences result;
  result.keys = shortKeys(differing);
  result.values = KJ_MAP(leaves, all) {
    auto values = KJ_MAP(key, differing) {
      return leaves.valueOf(key);
    };
    return kj::mv(values);
  };
  return result;
}

}  // namespace runner
