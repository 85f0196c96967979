#include <kj/debug.h>

#include <charconv>
#include <cmath>

#include "configs/language/document.h"

namespace configs {

namespace {

// Returns `text` as a basic string of TOML, which can hold every text.
kj::String quoted(kj::StringPtr text) {
  kj::Vector<char> result;
  result.add('"');
  for (char c: text) {
    switch (c) {
      case '"':
        result.addAll("\\\""_kj);
        break;
      case '\\':
        result.addAll("\\\\"_kj);
        break;
      case '\n':
        result.addAll("\\n"_kj);
        break;
      case '\t':
        result.addAll("\\t"_kj);
        break;
      default:
        if ((c >= 0 && c < ' ') || c == 0x7f) {
          constexpr char DIGITS[] = "0123456789abcdef";
          result.addAll(kj::str("\\u00", DIGITS[c >> 4], DIGITS[c & 15]));
        } else {
          result.add(c);
        }
    }
  }
  result.add('"');
  return kj::heapString(result.asPtr());
}

kj::String printKey(kj::StringPtr key) {
  bool bare = key.size() > 0;
  for (char c: key) {
    bare = bare && ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '_' || c == '-');
  }
  return bare ? kj::str(key) : quoted(key);
}

kj::String printReal(double value) {
  if (std::isnan(value)) return kj::str("nan");
  if (std::isinf(value)) return kj::str(value < 0 ? "-inf" : "inf");
  char digits[32];
  auto end = std::to_chars(digits, digits + sizeof(digits), value).ptr;
  auto result = kj::heapString(digits, end - digits);
  // A number without point and exponent would be read as an integer.
  for (char c: result) {
    if (c == '.' || c == 'e') return result;
  }
  return kj::str(result, ".0");
}

kj::String printInline(const Table& table) {
  if (table.entries.empty()) return kj::str("{}");
  auto entries = KJ_MAP(entry, table.entries) {
    return kj::str(printKey(entry.key), " = ", print(*entry.value));
  };
  return kj::str("{ ", kj::strArray(entries, ", "), " }");
}

// Returns an entry of a section as lines. A list of tables has one line per table.
kj::String printLine(const Entry& entry) {
  auto& content = entry.value->content;
  auto key = printKey(entry.key);
  if (content.is<List>() && !content.get<List>().empty() &&
      content.get<List>()[0]->content.is<Table>()) {
    auto lines = KJ_MAP(element, content.get<List>()) {
      return kj::str("  ", print(*element), ",\n");
    };
    return kj::str(key, " = [\n", kj::strArray(lines, ""), "]\n");
  }
  return kj::str(key, " = ", print(*entry.value), "\n");
}

}  // namespace

kj::String print(const Value& value) {
  KJ_SWITCH_ONEOF(value.content) {
    KJ_CASE_ONEOF(flag, bool) {
      return kj::str(flag ? "true" : "false");
    }
    KJ_CASE_ONEOF(integer, int64_t) {
      return kj::str(integer);
    }
    KJ_CASE_ONEOF(real, double) {
      return printReal(real);
    }
    KJ_CASE_ONEOF(text, kj::String) {
      return quoted(text);
    }
    KJ_CASE_ONEOF(list, List) {
      auto elements = KJ_MAP(element, list) {
        return print(*element);
      };
      return kj::str("[", kj::strArray(elements, ", "), "]");
    }
    KJ_CASE_ONEOF(table, Table) {
      return printInline(table);
    }
  }
  // The error in it was reported where it was read.
  return kj::str("…");
}

kj::String print(const Table& table) {
  kj::Vector<kj::String> parts;
  for (auto& entry: table.entries) {
    if (!entry.value->content.is<Table>()) parts.add(printLine(entry));
  }
  for (auto& section: table.entries) {
    if (!section.value->content.is<Table>()) continue;
    parts.add(kj::str(parts.empty() ? "" : "\n", "[", printKey(section.key), "]\n"));
    for (auto& entry: section.value->content.get<Table>().entries) parts.add(printLine(entry));
  }
  return kj::strArray(parts, "");
}

}  // namespace configs
