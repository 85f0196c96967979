#include "configs/language/document.h"

#include <kj/debug.h>

#include "configs/language/failure.h"
#include "configs/language/syntax_error.h"

// toml++ returns its parse error as a value.
#define TOML_EXCEPTIONS 0
#include <toml++/toml.h>

#include <algorithm>

namespace configs {

kj::Maybe<const Entry&> Table::find(kj::StringPtr key) const {
  for (auto& entry: entries) {
    if (entry.key == key) return entry;
  }
  return nullptr;
}

namespace {

// An experiment file is a page; what is larger is another file.
constexpr size_t FILE_BYTES_MAX = 1 << 20;

kj::Maybe<Entry&> findEntry(Table& table, kj::StringPtr key) {
  for (auto& entry: table.entries) {
    if (entry.key == key) return entry;
  }
  return nullptr;
}

kj::String string(std::string_view text) {
  return kj::heapString(text.data(), text.size());
}

// -------------------------------------------------------------------------------------------------
// From toml++'s tree to ours.

Span spanOf(const Source& source, const toml::source_region& region) {
  return {&source, region.begin.line, region.begin.column, region.end.line, region.end.column};
}

Value convert(const Source& source, const toml::node& node, Diagnostics& diagnostics);

Table convertTable(const Source& source, const toml::table& table, Diagnostics& diagnostics) {
  Table result;
  result.span = spanOf(source, table.source());
  for (auto&& [key, node]: table) {
    result.entries.add(Entry{string(key.str()), spanOf(source, key.source()),
        kj::heap(convert(source, node, diagnostics))});
  }
  // toml++ sorts by name.
  std::sort(result.entries.begin(), result.entries.end(), [](const Entry& a, const Entry& b) {
    return a.keySpan.line != b.keySpan.line ? a.keySpan.line < b.keySpan.line
                                            : a.keySpan.column < b.keySpan.column;
  });
  return result;
}

Value convert(const Source& source, const toml::node& node, Diagnostics& diagnostics) {
  Value result;
  result.span = spanOf(source, node.source());
  switch (node.type()) {
    case toml::node_type::boolean:
      result.content = node.as_boolean()->get();
      break;
    case toml::node_type::integer:
      result.content = int64_t(node.as_integer()->get());
      break;
    case toml::node_type::floating_point:
      result.content = node.as_floating_point()->get();
      break;
    case toml::node_type::string:
      result.content = string(node.as_string()->get());
      break;
    case toml::node_type::array: {
      List list;
      for (auto& element: *node.as_array()) {
        list.add(kj::heap(convert(source, element, diagnostics)));
      }
      result.content = kj::mv(list);
      break;
    }
    case toml::node_type::table:
      result.content = convertTable(source, *node.as_table(), diagnostics);
      break;
    default:
      // The value stays empty: readers know that it has been reported.
      diagnostics.error(result.span, "dates and times have no meaning in an experiment file",
          "if it is a name, write it in quotes");
  }
  return result;
}

// -------------------------------------------------------------------------------------------------
// Parsing.

void reportSyntax(const Source& source, const toml::parse_error& error, Diagnostics& diagnostics) {
  auto place = error.source().begin;
  reportSyntax(source, place.line, place.column, string(error.description()), diagnostics);
}

// The tree of `source`, or null after reporting a syntax error.
kj::Maybe<Table> parseSource(const Source& source, Diagnostics& diagnostics) {
  auto result = toml::parse(std::string_view(source.text.cStr(), source.text.size()));
  if (!result) {
    reportSyntax(source, result.error(), diagnostics);
    return nullptr;
  }
  auto table = convertTable(source, result.table(), diagnostics);
  // What is missing there is missing from the file as a whole, not from its first line.
  table.span = {&source, 1, 1, 1, 1};
  return kj::mv(table);
}

// -------------------------------------------------------------------------------------------------
// Layers.

// Whose place a table has that both layers hold: a file's own header is where one goes on writing,
// a `--set` is not.
enum class Place { OVER, UNDER };

void lay(Table over, Table& under, Place place) {
  if (place == Place::OVER) under.span = over.span;
  for (auto& entry: over.entries) {
    KJ_IF_MAYBE(below, findEntry(under, entry.key)) {
      auto& content = entry.value->content;
      if (content.is<Table>() && below->value->content.is<Table>()) {
        lay(kj::mv(content.get<Table>()), below->value->content.get<Table>(), place);
        if (place == Place::UNDER) continue;
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

kj::Maybe<Entry> takeEntry(Table& table, kj::StringPtr key) {
  kj::Maybe<Entry> result;
  kj::Vector<Entry> rest;
  for (auto& entry: table.entries) {
    if (entry.key == key) {
      result = kj::mv(entry);
    } else {
      rest.add(kj::mv(entry));
    }
  }
  table.entries = kj::mv(rest);
  return result;
}

// Reads files into a document, one `extends` after the other.
class Loader {
public:
  Loader(const kj::ReadableDirectory& folder, Document& document, Diagnostics& diagnostics)
      : folder(folder), document(document), diagnostics(diagnostics) {}

  // The tree of the file at `path` with everything that it extends below it. `name` is what
  // messages call it.
  Table read(kj::Path path, kj::StringPtr name, kj::String text) {
    auto source = kj::heap(Source{kj::str(name), kj::mv(text)});
    auto& kept = *source;
    document.sources.add(kj::mv(source));
    chain.add(path.clone());

    Table table;
    KJ_IF_MAYBE(parsed, parseSource(kept, diagnostics)) {
      table = kj::mv(*parsed);
    } else {
      document.complete = false;
      table.span = {&kept, 1, 1, 1, 1};
    }
    KJ_IF_MAYBE(extends, takeEntry(table, "extends")) {
      KJ_IF_MAYBE(base, readBase(path, name, *extends->value)) {
        lay(kj::mv(table), *base, Place::OVER);
        table = kj::mv(*base);
      } else {
        document.complete = false;
      }
    }
    return table;
  }

  // The text of a file, or null if there is none.
  kj::Maybe<kj::String> readText(kj::PathPtr path, kj::StringPtr name) {
    KJ_CONTEXT("reading an experiment file", name);
    KJ_IF_MAYBE(entry, folder.tryLstat(path)) {
      if (entry->type == kj::FsNode::Type::DIRECTORY) return nullptr;
    }
    KJ_IF_MAYBE(file, folder.tryOpenFile(path)) {
      auto about = (*file)->stat();
      if (about.type != kj::FsNode::Type::FILE) return nullptr;
      if (about.size > FILE_BYTES_MAX) {
        fail("cannot read ", name, " as an experiment file: it has ", about.size,
            " bytes, and one has at most ", FILE_BYTES_MAX, "; name the .toml file");
      }
      auto text = (*file)->readAllText();
      // A byte-order mark would shift the columns of the first line.
      if (text.startsWith("\xef\xbb\xbf")) text = kj::str(text.slice(3));
      return kj::mv(text);
    }
    return nullptr;
  }

private:
  const kj::ReadableDirectory& folder;
  Document& document;
  Diagnostics& diagnostics;
  kj::Vector<kj::Path> chain;

  kj::Maybe<Table> readBase(kj::PathPtr from, kj::StringPtr fromName, const Value& value) {
    auto& content = value.content;
    if (!content.is<kj::String>()) {
      diagnostics.error(value.span, "`extends` is a string: the path of the file below this one");
      return nullptr;
    }
    auto& relative = content.get<kj::String>();
    auto place = evaluate(from.parent(), relative);
    auto name = beside(fromName, relative);
    KJ_IF_MAYBE(path, place) {
      for (size_t i: kj::indices(chain)) {
        if (chain[i] != *path) continue;
        kj::Vector<kj::StringPtr> circle;
        for (auto& source: document.sources.slice(i, chain.size())) circle.add(source->name);
        circle.add(circle[0]);
        diagnostics.error(value.span,
            kj::str("`extends` goes in a circle: ", kj::strArray(circle, " → ")),
            "a file that others extend cannot extend one of them");
        return nullptr;
      }
      KJ_IF_MAYBE(text, readText(*path, name)) {
        return read(kj::mv(*path), name, kj::mv(*text));
      }
    }
    diagnostics.error(value.span, kj::str("there is no file `", name, "` to extend"),
        kj::str("the path is taken from the folder of ", fromName));
    return nullptr;
  }

  // `relative` as seen from `base`; null if it leaves the folder that everything is read from.
  static kj::Maybe<kj::Path> evaluate(kj::PathPtr base, kj::StringPtr relative) {
    size_t depth = base.size();
    if (relative.startsWith("/")) depth = 0;
    size_t begin = 0;
    for (size_t i = 0; i <= relative.size(); ++i) {
      if (i < relative.size() && relative[i] != '/') {
        // kj refuses a path with this byte by an exception.
        if (relative[i] == '\0') return nullptr;
        continue;
      }
      auto part = relative.slice(begin, i);
      begin = i + 1;
      if (part == kj::StringPtr("..").asArray()) {
        if (depth == 0) return nullptr;
        --depth;
      } else if (part.size() > 0 && part != kj::StringPtr(".").asArray()) {
        ++depth;
      }
    }
    if (depth == 0) return nullptr;
    return base.eval(relative);
  }

  // `relative` as messages call it: in front of it the folder of the name that it is relative to.
  static kj::String beside(kj::StringPtr name, kj::StringPtr relative) {
    KJ_IF_MAYBE(slash, name.findLast('/')) {
      if (!relative.startsWith("/")) return kj::str(name.slice(0, *slash + 1), relative);
    }
    return kj::str(relative);
  }
};

// -------------------------------------------------------------------------------------------------
// --set.

// The tree of one `a.b=value`, or null after reporting what is wrong with it.
kj::Maybe<Table> parseOverride(const Source& source, Diagnostics& diagnostics) {
  Line line(source, 1);
  auto wrong = [&](kj::StringPtr message) {
    diagnostics.error(
        line.span(line.begin(), line.end()), message, "write --set section.key=value");
    return nullptr;
  };
  kj::StringPtr text = source.text;
  if (text.findFirst('\n') != nullptr) return wrong("this is more than one line");
  size_t equals = text.findFirst('=').orDefault(text.size());
  if (equals == text.size()) return wrong("this gives no value");

  auto result = toml::parse(std::string_view(text.cStr(), text.size()));
  if (result) {
    auto table = convertTable(source, result.table(), diagnostics);
    if (table.entries.empty()) return wrong("this names no key");
    return kj::mv(table);
  }
  size_t begin = equals + 1;
  while (text[begin] == ' ') ++begin;
  // What opens like TOML was meant to be TOML.
  char first = text[begin];
  if (first == '"' || first == '\'' || first == '[' || first == '{') {
    reportSyntax(source, result.error(), diagnostics);
    return nullptr;
  }
  // Anything else is a string, `mnist` for `"mnist"`: a shell takes the quotes away.
  auto keyAlone = kj::str(text.slice(0, equals), "=0");
  auto key = toml::parse(std::string_view(keyAlone.cStr(), keyAlone.size()));
  if (!key) {
    reportSyntax(source, key.error(), diagnostics);
    return nullptr;
  }
  auto table = convertTable(source, key.table(), diagnostics);
  if (table.entries.empty()) return wrong("this names no key");
  auto* value = table.entries[0].value.get();
  while (value->content.is<Table>()) {
    value = value->content.get<Table>().entries[0].value.get();
  }
  value->span = line.span(begin, line.end());
  value->content = kj::str(text.slice(begin));
  return kj::mv(table);
}

}  // namespace

kj::Own<Document> load(const kj::ReadableDirectory& folder, kj::StringPtr path,
    kj::ArrayPtr<const kj::StringPtr> overrides, Diagnostics& diagnostics, kj::PathPtr current) {
  auto document = kj::heap<Document>();
  document->file = kj::str(path);
  Loader loader(folder, *document, diagnostics);
  auto place = current.eval(path);
  KJ_IF_MAYBE(text, loader.readText(place, path)) {
    document->root = loader.read(kj::mv(place), path, kj::mv(*text));
  } else {
    fail("cannot read the experiment file ", path, ": there is no such file; check the path");
  }
  for (auto text: overrides) {
    auto key = text.slice(0, text.findFirst('=').orDefault(text.size()));
    auto source = kj::heap(Source{kj::str("--set ", key), kj::str(text)});
    KJ_IF_MAYBE(table, parseOverride(*source, diagnostics)) {
      lay(kj::mv(*table), document->root, Place::UNDER);
    } else {
      document->complete = false;
    }
    document->sources.add(kj::mv(source));
  }
  return document;
}

kj::Own<Document> parse(kj::StringPtr name, kj::StringPtr text, Diagnostics& diagnostics) {
  auto document = kj::heap<Document>();
  document->file = kj::str(name);
  auto source = kj::heap(Source{kj::str(name), kj::str(text)});
  KJ_IF_MAYBE(table, parseSource(*source, diagnostics)) {
    document->root = kj::mv(*table);
  } else {
    document->complete = false;
    document->root.span = {source.get(), 1, 1, 1, 1};
  }
  document->sources.add(kj::mv(source));
  return document;
}

}  // namespace configs
